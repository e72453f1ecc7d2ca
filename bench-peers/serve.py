#!/usr/bin/env python3
"""What serving costs: geth and arbor serve the same chain on the loopback, and arbor serves next to a replay.

    bench-peers/serve.py CHAIN_DIR [--seconds N] [--runs N] [--replays N] [--parts serving,replay] [--report FILE]

serving: Both import the chain once. Then each method is posted at the head by wrk, from one core, to one server at a time,
which has the other cores; the sides take turns. First as fast as the server answers: requests a second, and CPU seconds of
the server (/proc/PID/stat) for each request. Then at half of geth's rate: the 99th percentile of the delay. Before anything
is timed, both must give the same answers. Medians of the runs are printed.

replay: arbor replays the chain without a server, with one that nobody asks (--serve), and with one that a client asks for
100 balances a second. Medians of the CPU seconds are printed.

Limits: CPU for each request at most half of geth's; the 99th percentile at most geth's; 3 % of a replay's CPU for a server
at rest, 5 % with the client. Exit status 1: one is missed, or answers differ. wrk must be installed.
"""

import argparse
import http.client
import json
import os
import random
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

from chains import prepare
from measure import CommandFailed, require_linux, run
from nodes import free_port, import_into_arbor, import_into_geth, serve_arbor, serve_geth
from sides import Arbor, find_program, peers_folder

CONNECTIONS = 64
BODIES = 2_000
CHECKED = 200
# How long a rate is tried, in seconds.
TRIAL = 2
# Balances a second that the client of a replay asks for.
BALANCES = 100
# Bodies in their order, over and over; then each connection waits so that all together keep to a rate.
LUA = """
local bodies, place = {}, 0
for line in io.lines("@BODIES@") do bodies[#bodies + 1] = line end
local mean = @MEAN@
wrk.method = "POST"
wrk.headers["Content-Type"] = "application/json"
function init(args) math.randomseed(@SEED@) place = math.random(#bodies) end
function request()
    place = place % #bodies + 1
    return wrk.format(nil, nil, nil, bodies[place])
end
if mean > 0 then
    function delay() return math.floor(-math.log(1 - math.random()) * mean + 0.5) end
end
function done(summary, latency, requests)
    local errors = summary.errors
    io.write(string.format("RESULT %d %d %d %f %f\\n", summary.requests, summary.duration,
        errors.connect + errors.read + errors.write + errors.status + errors.timeout,
        latency:percentile(50), latency:percentile(99)))
end
"""


def bodies(arbor, database):
    """Posts of each method: accounts and slots of the state, in random order."""
    dump = subprocess.run([arbor, "dump", "--db", database], capture_output=True, text=True, check=True).stdout
    accounts, slots, codes = [], [], []
    for line in dump.splitlines()[1:]:
        account = json.loads(line)
        accounts.append(account["address"])
        slots += [(account["address"], slot) for slot in list(account.get("storage") or {})[:50]]
        if account.get("storage") and account.get("code"):
            codes.append(account["address"])
    draw = random.Random(48)
    pick = lambda some: draw.choice(some)
    word = lambda slot: "0x" + slot.removeprefix("0x").rjust(64, "0")
    owner = lambda: pick(accounts).removeprefix("0x").rjust(64, "0")

    def slot():
        address, number = pick(slots)
        return address, word(number)

    def proof():
        address, number = slot()
        return [address, [number], "latest"]

    made = {
        "eth_getBalance": lambda: [pick(accounts), "latest"],
        "eth_getStorageAt": lambda: [*slot(), "latest"],
        # balanceOf(address): what wallets ask of tokens.
        "eth_call": lambda: [{"to": pick(codes), "data": "0x70a08231" + owner()}, "latest"],
        "eth_getProof": proof,
    }
    posts = {}
    for method, params in made.items():
        calls = (params() for _ in range(BODIES))
        posts[method] = [{"jsonrpc": "2.0", "id": 1, "method": method, "params": call} for call in calls]
    return posts


def compare(nodes, posts):
    """Whether both give the same answers."""
    for method, calls in posts.items():
        for call in calls[:CHECKED]:
            answers = [node.post(call) for node in nodes]
            for answer in answers:
                # What an error says is the client's own.
                answer.get("error", {}).pop("message", None)
            if answers[0] != answers[1]:
                raise CommandFailed(f"{method} {call['params']}: {nodes[0].name} answers {answers[0]}, {nodes[1].name} {answers[1]}")


def load(node, file, seconds, mean, workplace, core):
    """Posts for some seconds; returns requests a second, CPU for each and the percentiles in microseconds."""
    script = workplace / "load.lua"
    filled = LUA.replace("@BODIES@", str(file)).replace("@MEAN@", str(mean)).replace("@SEED@", "48")
    script.write_text(filled)
    before = node.cpu_seconds()
    command = ["taskset", "-c", core, "wrk", "-t", "1", "-c", str(CONNECTIONS), "-d", f"{seconds}s", "-s", str(script), node.url]
    said = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    cpu = node.cpu_seconds() - before
    found = re.search(r"^RESULT (\d+) (\d+) (\d+) (\S+) (\S+)", said, re.M)
    requests, micros, errors = (int(found.group(place)) for place in (1, 2, 3))
    if errors or not requests:
        raise CommandFailed(f"{node.name}: {errors} requests failed of {requests}:\n{said}")
    rate = requests * 1e6 / micros
    return {"rate": rate, "cpu_micros": cpu * 1e6 / requests, "p50_micros": float(found.group(4)), "p99_micros": float(found.group(5))}


def wait_for_rate(node, file, rate, workplace, core):
    """The mean wait of a connection between requests, in milliseconds, at which this rate comes about."""
    mean = CONNECTIONS * 1e3 / rate
    for _ in range(4):
        found = load(node, file, TRIAL, mean, workplace, core)["rate"]
        if abs(found / rate - 1) < 0.05:
            break
        # What a request takes comes on top of the wait.
        mean = max(0.1, mean + CONNECTIONS * 1e3 / rate - CONNECTIONS * 1e3 / found)
    return mean


def measure(nodes, posts, options, workplace):
    core, figures = str(os.cpu_count() - 1), {}
    for method, calls in posts.items():
        file = workplace / f"{method}.jsonl"
        file.write_text("".join(json.dumps(call) + "\n" for call in calls))
        peaks, paced = ({node.name: [] for node in nodes} for _ in range(2))
        for node in nodes:
            load(node, file, TRIAL, 0, workplace, core)
        for _ in range(options.runs):
            for node in nodes:
                peaks[node.name].append(load(node, file, options.seconds, 0, workplace, core))
        half = statistics.median(found["rate"] for found in peaks["geth"]) / 2
        means = {node.name: wait_for_rate(node, file, half, workplace, core) for node in nodes}
        for _ in range(options.runs):
            for node in nodes:
                paced[node.name].append(load(node, file, options.seconds, means[node.name], workplace, core))
        figures[method] = {"half_of_geths_rate": half, "peak": peaks, "paced": paced}
        print(f"{method} is measured", file=sys.stderr)
    return figures


class Client(threading.Thread):
    """Asks a server for balances at an even rate, from when it listens until it goes."""

    def __init__(self, port, accounts):
        super().__init__(daemon=True)
        self.port, self.accounts, self.answers, self.ended = port, accounts, 0, threading.Event()

    def run(self):
        connection, due = None, time.monotonic()
        for number in range(sys.maxsize):
            due += 1 / BALANCES
            if self.ended.wait(max(0, due - time.monotonic())):
                return
            account = self.accounts[number % len(self.accounts)]
            call = {"jsonrpc": "2.0", "id": number, "method": "eth_getBalance", "params": [account, "latest"]}
            try:
                connection = connection or http.client.HTTPConnection("127.0.0.1", self.port, timeout=10)
                connection.request("POST", "/", json.dumps(call), {"Content-Type": "application/json"})
                answer = json.load(connection.getresponse())
            except (OSError, http.client.HTTPException):
                # It does not listen yet, or no longer.
                connection, due = None, time.monotonic()
                continue
            # Before the first commit there is no state.
            self.answers += "result" in answer


def replays(arbor, chain, accounts, options, workplace):
    """CPU and wall seconds of replays: alone, with a server at rest, and with a client."""
    figures = {"alone": [], "at rest": [], "with a client": []}
    for number in range(options.replays):
        for name, found in figures.items():
            database = workplace / "replayed"
            shutil.rmtree(database, ignore_errors=True)
            port = free_port()
            command = [arbor, "replay", "--db", database, "--genesis", chain.genesis, chain.export]
            command += [] if name == "alone" else ["--serve", port]
            client = Client(port, accounts)
            if name == "with a client":
                client.start()
            usage = run(command, workplace / "replay.log")
            client.ended.set()
            if name == "with a client":
                client.join()
                if client.answers < BALANCES * usage.wall_s / 2:
                    raise CommandFailed(f"the client got {client.answers} answers in {usage.wall_s:.1f} s of a replay")
            found.append({"cpu_s": usage.user_s + usage.sys_s, "wall_s": usage.wall_s, "answers": client.answers})
    return figures


def middle(found, key):
    return statistics.median(each[key] for each in found)


def serving_table(figures):
    """Prints the medians; returns the limits that are missed."""
    print("| method | geth, requests/s | arbor, requests/s | geth, CPU µs a request | arbor, CPU µs a request | ratio | "
          "rate for delays, requests/s | geth, p99 ms | arbor, p99 ms |")
    print("|---|" + "---:|" * 8)
    missed = []
    for method, found in figures.items():
        geth, arbor = (found["peak"][name] for name in ("geth", "arbor"))
        late = [middle(found["paced"][name], "p99_micros") / 1e3 for name in ("geth", "arbor")]
        cpu = [middle(side, "cpu_micros") for side in (geth, arbor)]
        ratio = cpu[1] / cpu[0]
        shown = [f"{ratio:.2f}", f"{late[1]:.2f}"]
        if ratio > 0.5:
            missed.append(f"{method}: CPU for each request is {ratio:.2f} of geth's, the limit is 0.5")
            shown[0] = f"**{shown[0]}**"
        if late[1] > late[0]:
            missed.append(f"{method}: the 99th percentile is {late[1]:.2f} ms, geth's {late[0]:.2f} ms")
            shown[1] = f"**{shown[1]}**"
        reached = min(middle(found["paced"][name], "rate") for name in ("geth", "arbor"))
        if reached < 0.9 * found["half_of_geths_rate"]:
            missed.append(f"{method}: the rate for delays was {reached:,.0f} a second, not {found['half_of_geths_rate']:,.0f}")
        print(f"| `{method}` | {middle(geth, 'rate'):,.0f} | {middle(arbor, 'rate'):,.0f} | {cpu[0]:.1f} | {cpu[1]:.1f} | {shown[0]} | "
              f"{found['half_of_geths_rate']:,.0f} | {late[0]:.2f} | {shown[1]} |")
    return missed


def replay_table(figures):
    """Prints the medians; returns the limits that are missed."""
    print("\n| replay | CPU s | wall s | answers | CPU, of the replay alone |\n|---|" + "---:|" * 4)
    missed, alone = [], middle(figures["alone"], "cpu_s")
    for name, limit in (("alone", 0), ("at rest", 0.03), ("with a client", 0.05)):
        cpu, wall, answers = (middle(figures[name], key) for key in ("cpu_s", "wall_s", "answers"))
        more = cpu / alone - 1
        shown = f"{more:+.1%}"
        if more > limit:
            missed.append(f"a server {name} takes {more:.1%} of a replay's CPU, the limit is {limit:.0%}")
            shown = f"**{shown}**"
        print(f"| {name} | {cpu:.2f} | {wall:.2f} | {answers:,.0f} | {shown} |")
    return missed


def main():
    require_linux()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("chain", type=Path)
    parser.add_argument("--seconds", type=int, default=5, help="of each run of wrk (default 5)")
    parser.add_argument("--runs", type=int, default=3, help="of wrk for each figure; the median is shown (default 3)")
    parser.add_argument("--replays", type=int, default=5, help="of each kind; the median is shown (default 5)")
    parser.add_argument("--parts", default="serving,replay")
    parser.add_argument("--report", type=Path)
    options = parser.parse_args()
    parts = set(options.parts.split(","))
    if not parts <= {"serving", "replay"}:
        parser.error(f"--parts {options.parts}: serving, replay or both")
    if not shutil.which("wrk"):
        sys.exit("wrk is needed: apt install wrk")
    arbor = Arbor().program
    # The last core is the load generator's.
    cores = f"0-{max(os.cpu_count() - 2, 0)}"
    report, missed = {}, []
    with tempfile.TemporaryDirectory(prefix="arbor-serve-", dir="/var/tmp") as workplace:
        workplace = Path(workplace)
        chain = prepare(options.chain, workplace)
        database = import_into_arbor(arbor, chain, workplace)
        posts = bodies(arbor, database)
        if "serving" in parts:
            places = [peers_folder() / "geth", shutil.which("geth")]
            geth = find_program("geth", "GETH", places, "Run bench-peers/setup.sh, or name it in GETH.")
            base = import_into_geth(geth, chain, workplace, archive=False)
            with serve_geth(base, workplace, cores) as first, serve_arbor(arbor, chain, workplace, cores) as second:
                compare([first, second], posts)
                report["serving"] = measure([first, second], posts, options, workplace)
            missed += serving_table(report["serving"])
        if "replay" in parts:
            accounts = [call["params"][0] for call in posts["eth_getBalance"]]
            report["replay"] = replays(arbor, chain, accounts, options, workplace)
            missed += replay_table(report["replay"])
    if options.report:
        options.report.write_text(json.dumps(report, indent=1))
    for limit in missed:
        print(f"MISSED: {limit}")
    return 1 if missed else 0


if __name__ == "__main__":
    try:
        sys.exit(main())
    except CommandFailed as failure:
        sys.exit(f"error: {failure}")
