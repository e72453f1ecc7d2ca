#!/usr/bin/env python3
"""Opens pages of comparisons and inspections in a headless Chromium and checks them.

    scripts/report_page.py PAGE.html... [--pictures DIR]

Each page must draw every plot within a second, without an error or a warning on the console, and ask for
nothing but itself. Every table behind a plot must open and have rows. With --pictures, each page is saved
as it looks in light, in dark, and on a phone. Exit code 2: there is no Chromium.
"""

import argparse
import base64
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

NAMES = ["chromium", "chromium-browser", "google-chrome", "google-chrome-stable"]
LONGEST_DRAWING_MS = 1000
LARGEST_PAGE_BYTES = 3_000_000
TOP_WIDTH = 1200
TOP_END = "document.querySelectorAll('.plot')[1].getBoundingClientRect().bottom + window.scrollY + 16"


class Browser:
    """A Chromium that is spoken to through a pipe, message by message (the DevTools protocol)."""

    def __init__(self, program, folder):
        to_browser, self.write_end = os.pipe()
        self.read_end, from_browser = os.pipe()

        def take_pipes():
            os.dup2(to_browser, 3)
            os.dup2(from_browser, 4)
            # A pipe that already had its number is otherwise closed when the program begins.
            os.set_inheritable(3, True)
            os.set_inheritable(4, True)

        flags = ["--headless=new", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--remote-debugging-pipe",
                 "--disable-dev-shm-usage", "--disable-background-networking", "--disable-component-update",
                 "--no-first-run", f"--user-data-dir={folder}", "about:blank"]
        self.process = subprocess.Popen([program, *flags], preexec_fn=take_pipes, close_fds=False,
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(to_browser)
        os.close(from_browser)
        self.buffer, self.number, self.events, self.session = b"", 0, [], None

    def receive(self):
        while b"\0" not in self.buffer:
            more = os.read(self.read_end, 1 << 20)
            if not more:
                sys.exit("the browser has ended")
            self.buffer += more
        text, _, self.buffer = self.buffer.partition(b"\0")
        return json.loads(text)

    def call(self, method, **parameters):
        self.number += 1
        message = {"id": self.number, "method": method, "params": parameters}
        if self.session:
            message["sessionId"] = self.session
        os.write(self.write_end, json.dumps(message).encode() + b"\0")
        while True:
            answer = self.receive()
            if answer.get("id") == self.number:
                if "error" in answer:
                    sys.exit(f"{method}: {answer['error']}")
                return answer["result"]
            self.events.append(answer)

    def evaluate(self, expression):
        result = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        if "exceptionDetails" in result:
            sys.exit(f"{expression}: {result['exceptionDetails']}")
        return result["result"].get("value")

    def open_page(self):
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self.session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        for domain in ["Page", "Runtime", "Log", "Network"]:
            self.call(f"{domain}.enable")

    def close(self):
        """Ends the browser with all its processes, which write to its folder until then."""
        self.session = None
        try:
            self.call("Browser.close")
        except (OSError, SystemExit):
            pass
        try:
            self.process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            self.process.kill()
            self.process.wait()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except (ProcessLookupError, PermissionError):
            pass


def load(browser, page, width, scheme):
    """Opens the page and waits until all plots are drawn."""
    browser.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=width < 600)
    browser.call("Emulation.setEmulatedMedia", features=[{"name": "prefers-color-scheme", "value": scheme}])
    browser.call("Page.navigate", url=page.as_uri())
    for _ in range(200):
        if browser.evaluate("document.documentElement?.dataset.drawn") is not None:
            return
        time.sleep(0.05)
    sys.exit(f"the plots are not drawn: {told(browser)}")


def told(browser):
    """What the console says, and what was asked of a network."""
    found = []
    for event in browser.events:
        parameters = event.get("params", {})
        match event.get("method"):
            case "Runtime.exceptionThrown":
                details = parameters["exceptionDetails"]
                found.append(details.get("exception", {}).get("description", details["text"]))
            case "Runtime.consoleAPICalled" if parameters["type"] in ("error", "warning", "assert"):
                found.append(f"console: {[part.get('value') for part in parameters['args']]}")
            case "Log.entryAdded" if parameters["entry"]["level"] in ("error", "warning"):
                found.append(f"log: {parameters['entry']['text']}")
            case "Network.requestWillBeSent":
                address = parameters["request"]["url"]
                if not address.startswith(("file:", "data:", "blob:")):
                    found.append(f"request: {address}")
    return found


CHECKS = """(() => {
  const plots = [...document.querySelectorAll(".plot")];
  const wrong = [];
  for (const plot of plots) {
    const chart = plot.querySelector(".chart");
    if (chart.dataset.drawn !== "true") wrong.push(plot.id + " is not drawn");
    const canvas = chart.querySelector("canvas");
    const pixels = canvas.getContext("2d").getImageData(0, 0, canvas.width, canvas.height).data;
    const colours = new Set();
    for (let at = 0; at < pixels.length; at += 4) if (pixels[at + 3] > 0) colours.add(pixels[at] << 16 | pixels[at + 1] << 8 | pixels[at + 2]);
    if (colours.size < 4) wrong.push(plot.id + " is empty");
    plot.querySelector("details").open = true;
  }
  return new Promise((done) => setTimeout(() => {
    for (const plot of plots) {
      if (plot.querySelectorAll("tbody tr").length === 0) wrong.push(plot.id + " has no table");
      plot.querySelector("details").open = false;
    }
    if (document.documentElement.scrollWidth > window.innerWidth) wrong.push("the page is wider than the window");
    if (document.querySelectorAll("#summary tbody tr").length < 8) wrong.push("the summary has too few rows");
    const names = plots.map((plot) => plot.id);
    done({ names, wrong, ms: Number(document.documentElement.dataset.drawnMs), errors: document.documentElement.dataset.errors });
  }, 100));
})()"""


def best_of_three(browser, page, width, scheme):
    """Loads the page again if it was slow: other processes may have had the processor."""
    for _ in range(3):
        load(browser, page, width, scheme)
        found = browser.evaluate(CHECKS)
        if found["ms"] <= LONGEST_DRAWING_MS:
            break
    return found


def picture(browser, file, height=None):
    """Saves the page as it looks, as a whole or from its top to a height."""
    size = browser.call("Page.getLayoutMetrics")["cssContentSize"]
    clip = {"x": 0, "y": 0, "width": size["width"], "height": height or size["height"], "scale": 1}
    shot = browser.call("Page.captureScreenshot", format="png", captureBeyondViewport=True, clip=clip)
    file.write_bytes(base64.b64decode(shot["data"]))


def title(page, pages):
    """A page's name, with those of folders above it as far as another page has the same."""
    parts = [*page.parts[1:-1], page.stem]
    for count in range(1, len(parts)):
        name = parts[-count:]
        if all(other == page or [*other.parts[1:-1], other.stem][-count:] != name for other in pages):
            break
    return "-".join(parts[-count:])


def check(browser, page, title, pictures):
    """Checks a page in light, in dark, and on a phone; returns what is wrong."""
    wrong = []
    if page.stat().st_size > LARGEST_PAGE_BYTES:
        wrong.append(f"{page.name} has {page.stat().st_size} bytes, more than {LARGEST_PAGE_BYTES}")
    for look, width, scheme in [("light", 1400, "light"), ("dark", 1400, "dark"), ("phone", 390, "light")]:
        name = f"{title}-{look}"
        found = best_of_three(browser, page, width, scheme)
        wrong += [f"{name}: {text}" for text in found["wrong"]]
        if found["ms"] > LONGEST_DRAWING_MS:
            wrong.append(f"{name}: drawn after {found['ms']} ms, more than {LONGEST_DRAWING_MS}")
        if pictures:
            pictures.mkdir(parents=True, exist_ok=True)
            picture(browser, pictures / f"{name}.png")
        print(f"{name}: {len(found['names'])} plots in {found['ms']} ms: {', '.join(found['names'])}")
    return wrong


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("pages", type=Path, nargs="+", metavar="PAGE.html")
    parser.add_argument("--pictures", type=Path, metavar="DIR")
    parser.add_argument("--top", type=Path, metavar="FILE.png", help="save the first page down to its first plots, in light")
    arguments = parser.parse_args()
    program = next(filter(None, map(shutil.which, NAMES)), None)
    if program is None:
        print(f"no browser: one of {', '.join(NAMES)} is needed", file=sys.stderr)
        sys.exit(2)
    pages, wrong = [page.resolve() for page in arguments.pages], []
    with tempfile.TemporaryDirectory(prefix="arbor-page-", ignore_cleanup_errors=True) as folder:
        browser = Browser(program, folder)
        try:
            browser.open_page()
            # The first page of a browser that has just started waits for the browser.
            load(browser, pages[0], 1400, "light")
            for page in pages:
                wrong += check(browser, page, title(page, pages), arguments.pictures)
            if arguments.top:
                load(browser, pages[0], TOP_WIDTH, "light")
                picture(browser, arguments.top, browser.evaluate(TOP_END))
            wrong += told(browser)
        finally:
            browser.close()
    if wrong:
        sys.exit("\n".join(dict.fromkeys(wrong)))


if __name__ == "__main__":
    main()
