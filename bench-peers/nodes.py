"""geth and arbor as servers of the same chain on the loopback."""

import itertools
import json
import os
import re
import signal
import socket
import subprocess
import time
import urllib.request
from contextlib import contextmanager
from pathlib import Path

from measure import CommandFailed, run


class Node:
    """A running server."""

    def __init__(self, name, process, url):
        self.name, self.process, self.url = name, process, url
        self._ids = itertools.count(1)

    def post(self, body):
        headers = {"Content-Type": "application/json"}
        request = urllib.request.Request(self.url, json.dumps(body).encode(), headers)
        with urllib.request.urlopen(request, timeout=600) as answer:
            return json.load(answer)

    def call(self, method, *params):
        answer = self.post({"jsonrpc": "2.0", "id": next(self._ids), "method": method, "params": params})
        if "error" in answer:
            raise CommandFailed(f"{self.name}: {method}: {answer['error']}")
        return answer["result"]

    def cpu_seconds(self):
        """CPU of all its threads so far."""
        fields = Path(f"/proc/{self.process.pid}/stat").read_text().rsplit(")", 1)[1].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

    def resident_bytes(self):
        status = Path(f"/proc/{self.process.pid}/status").read_text()
        return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.M).group(1)) * 1024


def free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


@contextmanager
def _served(name, command, log, port, cores):
    pinned = ["taskset", "-c", cores] if cores else []
    with open(log, "ab") as output:
        command = [*pinned, *map(str, command)]
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=output, stderr=output)
    node = Node(name, process, f"http://127.0.0.1:{port}")
    try:
        for _ in range(600):
            if process.poll() is not None:
                raise CommandFailed(f"{name} ended with {process.returncode}:\n{Path(log).read_text(errors='replace')[-2000:]}")
            try:
                node.call("eth_blockNumber")
                break
            except OSError:
                time.sleep(0.1)
        yield node
    finally:
        process.send_signal(signal.SIGTERM)
        try:
            process.wait(timeout=60)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def import_into_geth(program, chain, folder, archive):
    """Imports a chain; with `archive` all its states are kept."""
    datadir = folder / "geth"
    kept = ["--state.scheme", "hash", "--gcmode", "archive"] if archive else ["--state.scheme", "path"]
    base = [program, "--datadir", datadir, *kept]
    run([*base, "init", chain.genesis], folder / "geth.log")
    run([*base, "import", "--nocompaction", chain.export], folder / "geth.log")
    return [*base, "--syncmode", "full"]


def serve_geth(base, folder, cores=None):
    """Serves what `import_into_geth` made; it dials nobody."""
    port = free_port()
    alone = ["--nodiscover", "--maxpeers", "0", "--port", free_port(), "--authrpc.port", free_port(), "--ipcdisable"]
    http = ["--http", "--http.port", port, "--http.api", "eth,debug,net,web3", "--rpc.batch-request-limit", "10000"]
    return _served("geth", [*base, *alone, *http], folder / "geth.log", port, cores)


def import_into_arbor(program, chain, folder, retain="128"):
    database = folder / "db"
    run([program, "replay", "--db", database, "--genesis", chain.genesis, "--retain", retain, chain.export], folder / "arbor.log")
    return database


def serve_arbor(program, chain, folder, cores=None, call_time=5, database=None, options=()):
    port = free_port()
    command = [program, "serve", "--db", database or folder / "db", "--chain", chain.export, "--http", port, "--call-time", call_time, *options]
    return _served("arbor", command, folder / "arbor.log", port, cores)
