#!/usr/bin/env python3
"""Lets hostile clients at `arbor serve`, and watches its memory and what a well-behaved client gets.

    scripts/serve_hostile.py ARBOR [--minutes N] [--chain DIR]

ARBOR is the program. It serves a generated chain, or that of DIR (with chain.rlp and genesis.json). For a minute one client
asks for balances, proofs and blocks alone; for N minutes (default 10) it does so next to 1,000 connections:

  400  that send half a request and no more           200  that send a body byte by byte
  300  that ask for large answers and do not read      40  that send batches, of 1,000 calls and of 100,000
   20  that send JSON of 100,000 levels                 8  that send bodies of 128 MiB
   32  that send random methods, types and bytes

Whoever is refused or cut off begins again. Exit status 1: the server's memory is not bounded (--memory, 700 MiB), an answer to
the well-behaved client is wrong or missing, its median or its 99th percentile is more than 5 times what it was alone, or
connections are left open afterwards.
"""

import argparse
import asyncio
import json
import multiprocessing
import os
import random
import re
import signal
import socket
import statistics
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

HALF, DRIP, DEAF, BATCH, DEEP, LARGE, RANDOM = 400, 200, 300, 40, 20, 8, 32
METHODS = [
    "eth_getBalance", "eth_getStorageAt", "eth_getProof", "eth_call", "eth_estimateGas", "eth_createAccessList", "eth_feeHistory",
    "eth_getBlockByNumber", "eth_getBlockByHash", "debug_accountRange", "eth_getStorageValues", "debug_executionWitness",
    "eth_getTransactionByHash", "debug_getRawBlock", "eth_getLogs", "no_such_method",
]
VALUES = [
    None, 0, -1, 2**70, 1e300, "", "0x", "0x0", "latest", "earliest", [], {}, True, "0x" + "f" * 40, "0x" + "00" * 32, ["0x0"] * 9,
    {"to": None}, {"data": "0x5b600056"}, {"blockNumber": "0x1"}, {"blockHash": 7}, [[[]]], "\u0000", "0x" + "ab" * 5000,
]


def head(length):
    lines = ["POST / HTTP/1.1", "Host: localhost", "Content-Type: application/json", f"Content-Length: {length}", "", ""]
    return "\r\n".join(lines).encode()


def post(body):
    return head(len(body)) + body


class Client:
    """A connection that does not mind being refused."""

    def __init__(self, port):
        self.port = port

    async def __aenter__(self):
        self.reader, self.writer = await asyncio.open_connection("127.0.0.1", self.port)
        return self

    async def __aexit__(self, *_):
        self.writer.close()

    async def send(self, data):
        self.writer.write(data)
        await self.writer.drain()


async def half(client, draw):
    whole = post(b'{"jsonrpc":"2.0","id":1,"method":"eth_chainId"}')
    await client.send(whole[: draw.randrange(1, len(whole))])
    await client.reader.read()


async def drip(client, draw):
    await client.send(head(4 << 20))
    while True:
        await client.send(b" ")
        await asyncio.sleep(draw.uniform(0.2, 2))


async def deaf(client, draw):
    sock = client.writer.get_extra_info("socket")
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    client.writer.transport.pause_reading()
    call = {"jsonrpc": "2.0", "id": 1, "method": "eth_getBlockByNumber", "params": ["latest", True]}
    await client.send(post(json.dumps([call] * 200).encode()))
    await asyncio.sleep(draw.uniform(20, 60))


async def batch(client, draw):
    count = draw.choice([1_000, 1_000, 100_000])
    call = {"jsonrpc": "2.0", "id": 1, "method": draw.choice(METHODS[:4]), "params": ["0x" + "07" * 20, "0x0", "latest"]}
    await client.send(post(json.dumps([call] * count).encode()))
    await client.reader.read(1 << 16)
    await asyncio.sleep(draw.uniform(0.5, 2))


async def deep(client, draw):
    levels = b"[" * 100_000
    body = draw.choice([levels, b'{"jsonrpc":"2.0","id":1,"method":"eth_call","params":' + levels, b'{"a":' * 100_000])
    await client.send(post(body))
    await client.reader.read(1 << 16)
    await asyncio.sleep(draw.uniform(0.1, 1))


async def large(client, draw):
    await client.send(head(128 << 20))
    for _ in range(128):
        await client.send(b" " * (1 << 20))
        await asyncio.sleep(0.05)
    await client.reader.read(1 << 16)


async def anything(client, draw):
    for _ in range(20):
        if draw.random() < 0.1:
            await client.send(draw.randbytes(draw.randrange(1, 5_000)))
            break
        params = [draw.choice(VALUES) for _ in range(draw.randrange(0, 6))]
        body = json.dumps({"jsonrpc": "2.0", "id": draw.choice(VALUES), "method": draw.choice(METHODS), "params": params})
        await client.send(post(body.encode()))
        await asyncio.wait_for(client.reader.read(1 << 16), 30)
        await asyncio.sleep(draw.uniform(0, 0.3))


async def again(port, attack, draw, until, counts):
    while time.monotonic() < until:
        try:
            async with Client(port) as client:
                await asyncio.wait_for(attack(client, draw), max(until - time.monotonic(), 0.1))
        except (OSError, asyncio.TimeoutError, asyncio.IncompleteReadError):
            pass
        counts[attack.__name__] = counts.get(attack.__name__, 0) + 1
        await asyncio.sleep(draw.uniform(0.05, 0.5))


def attackers(port, kinds, until, seed, counts):
    """A process with many connections; it leaves the processor to others."""
    os.nice(10)

    async def all_of_them():
        draw = random.Random(seed)
        tasks = [again(port, attack, random.Random(draw.random()), until, counts) for attack, count in kinds for _ in range(count)]
        await asyncio.gather(*tasks)

    asyncio.run(all_of_them())


class WellBehaved:
    """Asks one thing after another, and expects always the same answers."""

    def __init__(self, url):
        self.url = url
        latest = self.ask("eth_getBlockByNumber", "latest", True)
        someone = latest["transactions"][0]["from"] if latest["transactions"] else latest["miner"]
        number = latest["number"]
        self.questions = [
            ("eth_getBalance", someone, number),
            ("eth_getProof", someone, ["0x0"], number),
            ("eth_getBlockByNumber", number, False),
            ("eth_getBalance", someone, "latest"),
        ]
        self.answers = [self.ask(*question) for question in self.questions]

    def ask(self, method, *params):
        body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": method, "params": params}).encode()
        request = urllib.request.Request(self.url, body, {"Content-Type": "application/json"})
        with urllib.request.urlopen(request, timeout=60) as answer:
            return json.load(answer)["result"]

    def run(self, seconds, each):
        """Milliseconds of each answer."""
        took, end = [], time.monotonic() + seconds
        while time.monotonic() < end:
            for question, expected in zip(self.questions, self.answers):
                begun = time.monotonic()
                found = self.ask(*question)
                took.append((time.monotonic() - begun) * 1e3)
                if found != expected:
                    sys.exit(f"{question} was answered with {found}, before with {expected}")
                time.sleep(0.02)
            each()
        return took


def resident(pid):
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.search(r"^VmRSS:\s+(\d+) kB", status, re.M).group(1)) / 1024


def figures(took):
    took = sorted(took)
    return {"answers": len(took), "median": statistics.median(took), "p99": took[len(took) * 99 // 100], "most": took[-1]}


def connections(url):
    with urllib.request.urlopen(url + "/metrics", timeout=60) as answer:
        return int(re.search(r"^arbor_serve_connections (\d+)", answer.read().decode(), re.M).group(1))


def serve(arbor, folder, chain):
    run = lambda *words: subprocess.run([arbor, *map(str, words)], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    if chain is None:
        chain = folder / "chain"
        run("generate", "--preset", "demo", "--blocks", 200, "--out", chain)
    run("replay", "--db", "db", "--retain", "all", chain)
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        port = taken.getsockname()[1]
    server = subprocess.Popen([arbor, "serve", "--db", "db", "--chain", chain, "--http", str(port)], cwd=folder, stderr=subprocess.DEVNULL)
    for _ in range(300):
        try:
            socket.create_connection(("127.0.0.1", port)).close()
            return server, port
        except OSError:
            time.sleep(0.1)
    sys.exit("the server does not listen")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("arbor", type=Path)
    parser.add_argument("--minutes", type=float, default=10)
    parser.add_argument("--chain", type=Path)
    parser.add_argument("--memory", type=float, default=700, help="MiB")
    options = parser.parse_args()
    faults = []
    with tempfile.TemporaryDirectory(dir="/var/tmp") as folder:
        chain = options.chain and options.chain.resolve()
        server, port = serve(options.arbor.resolve(), Path(folder), chain)
        url = f"http://127.0.0.1:{port}"
        client = WellBehaved(url)
        alone = figures(client.run(min(60, options.minutes * 60), lambda: None))
        before = resident(server.pid)
        seconds = options.minutes * 60
        until = time.monotonic() + seconds
        manager = multiprocessing.Manager()
        counts = [manager.dict() for _ in range(2)]
        kinds = [[(half, HALF), (drip, DRIP), (deaf, DEAF)], [(batch, BATCH), (deep, DEEP), (large, LARGE), (anything, RANDOM)]]
        processes = [multiprocessing.Process(target=attackers, args=(port, kinds[place], until, place, counts[place])) for place in (0, 1)]
        for process in processes:
            process.start()
        peaks, open_ones = [before], [0]

        def look():
            peaks.append(resident(server.pid))
            if len(peaks) % 50 == 0:
                open_ones.append(connections(url))

        beset = figures(client.run(seconds, look))
        for process in processes:
            process.join()
        tried = {name: count for each in counts for name, count in each.items()}
        # Those that did not read are dropped after 30 seconds.
        left, end = None, time.monotonic() + 60
        while time.monotonic() < end and (left is None or left > 1):
            time.sleep(1)
            left = connections(url)
        after = figures(client.run(10, lambda: None))
        server.send_signal(signal.SIGTERM)
        code = server.wait(timeout=60)
    if max(peaks) > options.memory:
        faults.append(f"the server had {max(peaks):.0f} MiB, the limit is {options.memory:.0f}")
    for name in ("median", "p99"):
        if beset[name] > 5 * alone[name]:
            faults.append(f"the {name} of the well-behaved client was {beset[name]:.1f} ms, and {alone[name]:.1f} ms alone")
    if left > 1:
        faults.append(f"{left - 1} connections were left open")
    if code != 130:
        faults.append(f"the server ended with {code}")
    rows = [("alone", alone), ("beset", beset), ("afterwards", after)]
    print("| well-behaved client | answers | median ms | p99 ms | longest ms |\n|---|---:|---:|---:|---:|")
    for name, found in rows:
        print(f"| {name} | {found['answers']:,} | {found['median']:.2f} | {found['p99']:.2f} | {found['most']:.1f} |")
    print(f"attempts: {', '.join(f'{name} {count:,}' for name, count in sorted(tried.items()))}")
    print(f"most connections seen {max(open_ones):,}; memory {before:.0f} MiB before, {max(peaks):.0f} at most, {peaks[-1]:.0f} at the end")
    for fault in faults:
        print(f"FAULT: {fault}")
    sys.exit(1 if faults else 0)


if __name__ == "__main__":
    main()
