"""Proofs of old blocks: what keeping nodes costs a replay, and how long `eth_getProof` takes at random heights, with geth beside it."""

import http.client
import json
import random
import re
import shutil
import statistics
import subprocess
import time
from pathlib import Path
from urllib.parse import urlsplit

import measure
from measure import CommandFailed
from nodes import import_into_geth, serve_arbor, serve_geth
from sides import Chain, find_program, peers_folder

DISTANCES = [128, 1_000, 10_000]
# Answers of two servers that are compared at each distance.
COMPARED = 20
# The goals of issue 50: milliseconds, kB a block, and CPU of a replay with the setting by that of one without.
HALF_MS, WORST_MS, BLOCK_KB, CPU_RATIO = 5, 25, 60, 1.10


class OldProofs:
    """A chain over many accounts, and its database with and without old nodes."""

    def __init__(self, arbor, arguments, workplace):
        self.arbor, self.arguments = arbor, arguments
        self.folder = Path(workplace) / f"old-proofs-{arguments.population}-{arguments.proof_blocks}"
        self.folder.mkdir(exist_ok=True)
        self.log = self.folder / "log"
        self.random = random.Random(50)
        self.missed = []

    def output(self, *words):
        command = [str(word) for word in [self.arbor.program, *words]]
        done = subprocess.run(command, capture_output=True, text=True)
        if done.returncode:
            raise CommandFailed(f"exit {done.returncode}: {' '.join(command)}\n{done.stderr[-2000:]}")
        return done.stdout

    def run(self, *words):
        self.log.unlink(missing_ok=True)
        return measure.run([self.arbor.program, *words], self.log)

    def generate(self):
        folder = self.folder / "chain"
        self.chain = Chain("old-proofs", folder / "chain.rlp", folder / "genesis.json")
        if not self.chain.export.exists():
            mix = ["--mix", "visit=1", "--txs", 50, "--blocks", self.arguments.proof_blocks]
            self.run("generate", "--out", folder, *mix, "--population", self.arguments.population)
            shutil.rmtree(folder / ".state", ignore_errors=True)

    def replay(self, kept):
        """Replays from the first block on, whose state is built before; returns what that took."""
        database = self.folder / ("kept" if kept else "plain")
        shutil.rmtree(database, ignore_errors=True)
        flags = ["--history-proofs"] if kept else []
        words = ["replay", "--db", database, "--retain", "all", "--memory", self.arguments.memory, *flags]
        self.run(*words, "--to", 0, self.chain.export.parent)
        return self.run(*words, self.chain.export.parent)

    def replays(self):
        turns = {False: [], True: []}
        for _ in range(self.arguments.replays):
            for kept, found in turns.items():
                usage = self.replay(kept)
                found.append(usage.user_s + usage.sys_s)
        plain, kept = (statistics.median(found) for found in turns.values())
        blocks = self.arguments.proof_blocks
        status = json.loads(self.output("status", "--db", self.folder / "kept", "--json"))
        self.head = status["block"]
        a_block = status["oldNodes"]["bytes"] / blocks / 1e3
        sizes = [measure.disk_bytes(self.folder / name) for name in ("plain", "kept")]
        shown = [", ".join(f"{cpu:.1f}" for cpu in found) for found in turns.values()]
        print("| | without | with `--history-proofs` | |\n|---|---:|---:|---|")
        print(f"| CPU of the replay in turn, s | {shown[0]} | {shown[1]} | {kept / plain:.2f} (medians), of {CPU_RATIO} |")
        print(f"| old nodes a block, kB | | {a_block:.1f} | of {BLOCK_KB} |")
        more = (sizes[1] - sizes[0]) / blocks / 1e3
        print(f"| disk, not compacted, MB | {sizes[0] / 1e6:,.0f} | {sizes[1] / 1e6:,.0f} | {more:.1f} kB a block more |\n", flush=True)
        self.limit(kept / plain, CPU_RATIO, "CPU of a replay with old nodes by that of one without")
        self.limit(a_block, BLOCK_KB, "kB of old nodes a block")

    def limit(self, found, most, what):
        if found > most:
            self.missed.append(f"{what}: {found:.2f}, the limit is {most}")

    def choose(self):
        """Random accounts of the first block with their slots; writes geth's genesis of all on the way."""
        command = [str(self.arbor.program), "dump", "--db", str(self.folder / "plain"), "--at", "0"]
        accounts, genesis = [], json.loads(self.chain.genesis.read_text())
        # geth's genesis lists what arbor's counts; it computes the root itself.
        genesis = {name: value for name, value in genesis.items() if name not in ("population", "stateRoot", "alloc")}
        self.listed = self.folder / "genesis-of-geth.json"
        with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as dump, open(self.listed, "w") as listed:
            next(dump.stdout)
            listed.write(json.dumps(genesis)[:-1] + ', "alloc": {')
            for place, line in enumerate(dump.stdout):
                account = json.loads(line)
                storage = {word(slot): word(value) for slot, value in (account.get("storage") or {}).items()}
                entry = {"balance": account["balance"], "nonce": hex(account["nonce"]), "code": account.get("code", "0x"), "storage": storage}
                listed.write(f"{', ' if place else ''}{json.dumps(account['address'])}: {json.dumps(entry)}")
                # A sample in which each has the same chance.
                chosen = (account["address"], list(storage)[:1])
                if len(accounts) < 5_000:
                    accounts.append(chosen)
                elif (other := self.random.randrange(place + 1)) < len(accounts):
                    accounts[other] = chosen
            listed.write("}}")
        if dump.returncode:
            raise CommandFailed(f"exit {dump.returncode}: {' '.join(command)}")
        self.accounts = accounts

    def requests(self, distance, count):
        """Proofs of random accounts, each at another height from a distance on."""
        heights = self.random.sample(range(distance, distance + max(100, count)), count)
        for back in heights:
            address, slots = self.random.choice(self.accounts)
            yield [address, slots, hex(max(0, self.head - back))]

    def ask(self, node, requests):
        """Asks for proofs, one after another; returns the milliseconds and answers of each."""
        place = urlsplit(node.url)
        connection = http.client.HTTPConnection(place.hostname, place.port, timeout=600)
        found = []
        for params in requests:
            body = json.dumps({"jsonrpc": "2.0", "id": 1, "method": "eth_getProof", "params": params})
            begin = time.monotonic()
            connection.request("POST", "/", body, {"Content-Type": "application/json"})
            answer = connection.getresponse().read()
            found.append(((time.monotonic() - begin) * 1e3, json.loads(answer)))
        connection.close()
        return found

    def serve(self, name, node, asked, answers):
        """Asks a server at every distance, and shows how long it takes. `answers` has those of the servers before."""
        for distance, requests in asked.items():
            found = self.ask(node, requests)
            refusals = [answer["error"]["message"] for _, answer in found if "error" in answer]
            times = sorted(took for took, answer in found[1:] if "error" not in answer)
            first = f"{found[0][0]:.1f}" if "error" not in found[0][1] else "refused"
            half, worst = (f"{percentile(times, of):.2f}" if times else "" for of in (50, 99))
            said = f"{len(refusals)} of {len(found)} refused: {refusals[0]}" if refusals else "all answered"
            peak = peak_bytes(node) / 1e6
            print(f"| {distance:,} | {name} | {first} | {half} | {worst} | {len(found)} | {said} | {peak:,.0f} |", flush=True)
            if name == "arbor, kept nodes" and (refusals or not times):
                raise CommandFailed(f"{name}: {refusals}")
            if name == "arbor, kept nodes":
                self.limit(percentile(times, 50), HALF_MS, f"p50 in ms {distance:,} blocks back")
                self.limit(percentile(times, 99), WORST_MS, f"p99 in ms {distance:,} blocks back")
            for params, (_, answer) in list(zip(requests, found))[:COMPARED]:
                if "error" in answer:
                    continue
                before = answers.setdefault(json.dumps(params), (name, answer["result"]))
                if before[1] != answer["result"]:
                    raise CommandFailed(f"{params}: {before[0]} answers {before[1]}, {name} answers {answer['result']}")

    def proofs(self):
        distances = [distance for distance in DISTANCES if distance < self.arguments.proof_blocks]
        asked = {distance: list(self.requests(distance, self.arguments.requests)) for distance in distances}
        # Each goes through all that changed since.
        few = {distance: requests[: self.arguments.rebuilt] for distance, requests in asked.items()}
        answers = {}
        print("| blocks back | | first, ms | p50, ms | p99, ms | requests | | peak memory, MB |")
        print("|---:|---|---:|---:|---:|---:|---|---:|")
        for name, folder, requests in (("arbor, kept nodes", "kept", asked), ("arbor, rebuilt", "plain", few)):
            memory = ["--memory", self.arguments.memory]
            with serve_arbor(self.arbor.program, self.chain, self.folder, database=self.folder / folder, options=memory) as node:
                self.serve(name, node, requests, answers)
        try:
            geth = find_program("geth", "GETH", [peers_folder() / "geth", shutil.which("geth")], "")
        except SystemExit:
            print("\ngeth is not here: bench-peers/setup.sh builds it, GETH names it")
            return
        for scheme in self.arguments.geth:
            chain = Chain(self.chain.name, self.chain.export, self.listed)
            base = import_into_geth(geth, chain, self.folder, archive=scheme == "archive")
            with serve_geth(base, self.folder) as node:
                self.serve(f"geth, {scheme}", node, asked, answers)
            shutil.rmtree(self.folder / "geth")


def word(text):
    return "0x" + text.removeprefix("0x").rjust(64, "0")


def percentile(ascending, of):
    """The least of the values that so many of a hundred do not exceed."""
    return ascending[min(len(ascending) - 1, -(-len(ascending) * of // 100) - 1)]


def peak_bytes(node):
    status = Path(f"/proc/{node.process.pid}/status").read_text()
    return int(re.search(r"^VmHWM:\s+(\d+) kB", status, re.M).group(1)) * 1024


def measure_old_proofs(arbor, arguments, workplace):
    """Returns the limits that are missed."""
    proofs = OldProofs(arbor, arguments, workplace)
    proofs.generate()
    proofs.replays()
    proofs.choose()
    proofs.proofs()
    return proofs.missed
