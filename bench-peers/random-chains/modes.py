"""The ways in which a chain is run. Each method of `Modes` is one; it raises `Difference` if something is wrong."""

import json
import random
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from dumps import Difference, compare

TIMEOUT_S = 300
MUTANTS_TREES = ("mpt",) * 6 + ("verkle", "ar16mt")
BEFORE_BYZANTIUM = ("frontier", "homestead", "tangerine", "spurious")
# Trees of different families. Two of them are functions of their contents: other ways to the same state have the same root.
FAMILIES = ("mpt", "verkle", "ar16mt", "eip8297", "eip7864")
FUNCTIONS = ("mpt", "eip8297")
EVM384_INTERFACES = ("v7", "immediate", "setmod", "eip-6690")
# A verdict that lacks a check which the witness does not allow (ommers of blocks that it does not have).
PARTIAL = 3


class Modes:
    """Runs one chain. `folder` has the chain, `databases` takes what is made of it."""

    def __init__(self, arbor, folder, databases, seed):
        self.arbor = str(arbor)
        self.folder = Path(folder)
        self.databases = Path(databases)
        self.random = random.Random(seed)
        self.chain = str(self.folder / "chain.rlp")
        self.genesis = str(self.folder / "genesis.json")
        self.counts = json.loads((self.folder / "counts.json").read_text())
        self.length = self.counts["Blocks"]

    # The modes. `ALL` names them.

    def one_go(self):
        self.replay("one")
        self.verify("one")
        compare(self.dump("one"), self.expected_dump())

    def restarts(self):
        for height in sorted(self.random.sample(range(self.length), min(3, self.length))):
            self.replay("restarts", "--retain", self.random.choice(["none", "all", "3"]), "--to", str(height))
        ways = [[], ["--threads", "1"], ["--memory", "24MiB"], ["--durable"], ["--compact"]]
        self.replay("restarts", *self.random.choice(ways))
        self.verify("restarts")
        compare(self.dump("restarts"), self.expected_dump())

    def reopened(self):
        for height in range(1, self.length + 1):
            self.replay("reopened", "--to", str(height))
        compare(self.dump("reopened"), self.expected_dump())

    def rollbacks(self):
        self.replay("rollbacks", "--retain", "all")
        for _ in range(2):
            height = self.random.randrange(self.length)
            self.run("rollback", *self.database("rollbacks"), "--to", str(height))
            self.verify("rollbacks")
            self.replay("rollbacks")
        self.verify("rollbacks")
        compare(self.dump("rollbacks"), self.expected_dump())

    def last(self):
        self.replay("last", "--verify", "last", "--retain", self.random.choice(["none", "2"]))
        self.verify("last")
        compare(self.dump("last"), self.expected_dump())

    def tree(self, tree):
        """Checks the state of each block, goes back and again to the end, and compares with a run in one go."""
        self.replay(tree, "--tree", tree, "--check-state", "1", "--retain", "all")
        self.run("rollback", *self.database(tree), "--to", str(self.random.randrange(self.length)))
        self.replay(tree, "--check-state", "1")
        self.verify(tree)
        self.replay(f"{tree}-again", "--tree", tree, "--retain", "none")
        roots = [self.roots(name) for name in (tree, f"{tree}-again")]
        if roots[0] != roots[1]:
            raise Difference(f"roots {roots}")
        compare(self.dump(f"{tree}-again"), self.dump(tree))

    def verkle(self):
        self.tree("verkle")

    def verkle_2023(self):
        self.tree("verkle-2023")

    def ar16mt(self):
        self.tree("ar16mt")

    def eip8297(self):
        self.tree("eip8297")

    def eip7864(self):
        self.tree("eip7864")

    def moves(self):
        """Moves the state to another tree from a random block on, with stops, rollbacks and proofs on the way."""
        source, target = self.random.sample(FAMILIES, 2)
        at, stride = self.random.randint(1, self.length), self.random.choice([1, 2, 7, 100, 10_000])
        move = ["--convert-to", target, "--at", str(at), "--stride", str(stride), "--check-state", "1"]
        try:
            self.move(source, target, at, move)
        except Difference as difference:
            raise Difference(f"{source} {' '.join(move)}: {difference}") from None

    def move(self, source, target, at, move):
        self.replay("plain", "--tree", source, "--retain", "all")
        begun = self.random.randrange(at)
        self.replay("moves", "--tree", source, "--retain", "all", "--to", str(begun))
        stops = sorted(self.random.sample(range(begun + 1, self.length + 1), min(3, self.length - begun)))
        for height, more in zip([*stops, self.length], [move, *[["--check-state", "1"]] * len(stops)]):
            if self.height("moves") < height:
                self.replay("moves", *more, "--to", str(height))
                self.verify("moves")
                self.compare_at("moves", "plain", height)
                self.prove_some("moves", height, (source, target))
        roots = self.run("roots", *self.database("moves"))
        for _ in range(2):
            height = self.random.randrange(self.length)
            self.run("rollback", *self.database("moves"), "--to", str(height))
            self.verify("moves")
            self.compare_at("moves", "plain", height)
            self.replay("moves", "--check-state", "1")
        if self.run("roots", *self.database("moves")) != roots:
            raise Difference("other roots after rollbacks")
        for height in self.random.sample(range(self.length + 1), min(3, self.length + 1)):
            self.compare_at("moves", "plain", height)
            self.prove_some("moves", height, (source, target))
        self.verify("moves")
        compare(self.dump("moves"), self.expected_dump(), roots=False)
        moving = self.status("moves")["moving"]
        amid = range(at, (moving["lastBlock"] or self.length) + 1)
        for height in self.random.sample(amid, min(3, len(amid))):
            self.execute_witness("moves", height)
        self.run("prune", *self.database("moves"), "--retain", "none")
        self.verify("moves")
        compare(self.dump("moves"), self.expected_dump(), roots=False)
        if self.status("moves")["tree"] == target and target in FUNCTIONS:
            converted = str(self.databases / "converted")
            self.run("convert", "--from", str(self.databases / "plain"), "--to", converted, "--tree", target)
            found, expected = (self.status(name)["stateRoot"] for name in ("moves", "converted"))
            if found != expected:
                raise Difference(f"root {found}, a conversion has {expected}")

    def old_proofs(self):
        """Proofs of random old blocks are the same by kept nodes as by rebuilding, also after a rollback."""
        tree = self.random.choice(FAMILIES)
        self.replay("kept", "--tree", tree, "--retain", "all", "--history-proofs")
        self.replay("rebuilt", "--tree", tree, "--retain", "all")
        for after_rollback in (False, True):
            if after_rollback:
                height = str(self.random.randrange(self.length))
                for name in ("kept", "rebuilt"):
                    self.run("rollback", *self.database(name), "--to", height)
                self.replay("kept")
                self.replay("rebuilt")
            for height in self.random.sample(range(self.length + 1), min(4, self.length + 1)):
                kept, rebuilt = (self.prove_some(name, height, (tree,)) for name in ("kept", "rebuilt"))
                if kept != rebuilt:
                    raise Difference(f"{tree}: block {height}: kept nodes give another proof")
            self.verify("kept")

    def witnesses(self):
        self.replay("history", "--retain", "all")
        files = self.make_witnesses("history", "witnesses")
        given = [word for file in files for word in ("--witness", file)]
        self.run("replay", "--genesis", self.genesis, *given, allowed=(0, PARTIAL))
        self.run("verify-witness", *files, allowed=(0, PARTIAL))

    def verkle_witnesses(self):
        self.replay("verkle-history", "--tree", "verkle", "--retain", "all")
        self.run("verify-witness", *self.make_witnesses("verkle-history", "verkle-witnesses"))

    def evm384(self):
        for interface in EVM384_INTERFACES:
            self.replay(f"evm384-{interface}", "--evm384", interface)
            compare(self.dump(f"evm384-{interface}"), self.expected_dump())

    def mutants(self):
        """Offers mutated blocks after their parents: arbor accepts those that go-ethereum accepts, and no other."""
        tree = self.random.choice(MUTANTS_TREES)
        if self.counts["First"] in BEFORE_BYZANTIUM:
            tree = "mpt"  # other trees leave receipts that carry Merkle-Patricia roots unverified
        rules = ["--tree", tree, "--check-state", "1", "--retain", "all"]
        head = None
        for mutant in self.list_mutants():
            if mutant["Block"] - 1 != head:
                head = mutant["Block"] - 1
                self.replay("mutants", *rules, "--to", str(head))
            file = str(self.folder / "mutants" / mutant["File"])
            done = self.try_run("replay", *self.database("mutants"), *rules, "--genesis", self.genesis, file)
            if (done.returncode == 0) != mutant["Accepted"]:
                geth = "accepts" if mutant["Accepted"] else f"refuses ({mutant['Reason']})"
                raise Difference(f"{mutant['File']} ({mutant['Kind']}): geth {geth}, arbor says: {done.stderr.strip()[-300:]}")
            if mutant["Accepted"]:
                self.run("rollback", *self.database("mutants"), "--to", str(head))
        self.replay("mutants", *rules)
        self.verify("mutants")
        compare(self.dump("mutants"), self.expected_dump(), roots=tree == "mpt")

    def mutant_witnesses(self):
        """Puts mutated blocks into the witnesses of the blocks that they were made of. Those that geth refuses do not
        hold. Those that geth accepts hold, or read what the witness lacks."""
        self.replay("history", "--retain", "all")
        files = {Path(file).stem: Path(file) for file in self.make_witnesses("history", "witnesses")}
        changed = self.databases / "changed.json"
        for mutant in filter(lambda mutant: "Header" in mutant, self.list_mutants()):
            witness, header = json.loads(files[str(mutant["Block"])].read_text()), mutant["Header"]
            block = (self.folder / "mutants" / mutant["File"]).read_bytes()
            witness["blockRlp"] = "0x" + block.hex()
            witness["number"], witness["hash"] = int(header["Number"]), header["Hash"]
            witness["postStateRoot"], witness["receiptsRoot"] = header["State"], header["ReceiptsRoot"]
            changed.write_text(json.dumps(witness))
            done = self.try_run("replay", "--genesis", self.genesis, "--witness", str(changed))
            named = f"{mutant['File']} ({mutant['Kind']}): geth"
            if done.returncode == 0 and not mutant["Accepted"]:
                raise Difference(f"{named} refuses ({mutant['Reason']}), its witness holds")
            if done.returncode == 1 and mutant["Accepted"] and "lacks" not in done.stderr:
                raise Difference(f"{named} accepts, arbor says: {done.stderr.strip()[-300:]}")

    # What they are made of.

    def list_mutants(self):
        return map(json.loads, (self.folder / "mutants/list.jsonl").read_text().splitlines())

    def try_run(self, *words):
        """Runs arbor; refuses only what no input may bring about."""
        try:
            done = subprocess.run([self.arbor, *words], capture_output=True, text=True, timeout=TIMEOUT_S)
        except subprocess.TimeoutExpired:
            raise Difference(f"arbor {words[0]} did not end in {TIMEOUT_S} s") from None
        if done.returncode not in (0, 1, PARTIAL) or "panicked" in done.stderr:
            raise Difference(f"arbor {words[0]}: exit code {done.returncode}: {done.stderr.strip()[-600:]}")
        return done

    def run(self, *words, allowed=(0,)):
        done = self.try_run(*words)
        if done.returncode not in allowed:
            said = (done.stderr or done.stdout).strip()[-600:]
            raise Difference(f"arbor {words[0]}: exit code {done.returncode}: {said}")
        return done.stdout

    def database(self, name):
        return ["--db", str(self.databases / name)]

    def replay(self, name, *more):
        return self.run("replay", *self.database(name), "--genesis", self.genesis, *more, self.chain)

    def verify(self, name):
        self.run("verify", *self.database(name))

    def dump(self, name):
        return self.run("dump", *self.database(name))

    def expected_dump(self):
        return (self.folder / "dump.jsonl").read_text()

    def status(self, name):
        return json.loads(self.run("status", *self.database(name), "--json"))

    def height(self, name):
        return self.status(name)["block"]

    def compare_at(self, name, other, height):
        """Compares the states of two databases at a block."""
        found, expected = (self.run("dump", *self.database(of), "--at", str(height)) for of in (name, other))
        compare(found, expected, roots=False)

    def prove_some(self, name, height, trees):
        """Proves some accounts and slots of the last state at a block, and checks the proof against the block's root, which is of one of the trees."""
        chance = random.Random(height)
        accounts = [json.loads(line) for line in self.expected_dump().splitlines() if "balance" in line]
        accounts = [account for account in accounts if "address" in account]
        of = chance.choice(accounts)
        slots = sorted(of.get("storage") or {})
        names = [of["address"], *chance.sample(slots, min(2, len(slots))), "0x77"]
        file = self.databases / f"{name}.proof"
        self.run("prove", *self.database(name), "--at", str(height), "--out", str(file), *names)
        roots = dict(line.split()[:2] for line in self.run("roots", *self.database(name)).splitlines())
        check = ["verify-proof", str(file), "--root", roots[str(height)]]
        # Some roots do not show which of two trees they are of.
        said = [self.try_run(*check, *more) for more in [[], *(["--tree", tree] for tree in trees)]]
        if not any(done.returncode in (0, PARTIAL) for done in said):
            raise Difference(f"block {height}: {' / '.join(done.stderr.strip()[-300:] for done in said)}")
        return file.read_bytes()

    def execute_witness(self, name, height):
        """Makes the witness of a block, and executes the block over it."""
        file = str(self.databases / f"{name}-{height}.json")
        self.run("witness", *self.database(name), "--block", str(height), "--out", file, self.chain)
        self.run("replay", "--genesis", self.genesis, "--witness", file, allowed=(0, PARTIAL))

    def roots(self, name):
        lines = self.run("status", *self.database(name)).splitlines()
        roots = [line for line in lines if "root" in line.lower()]
        if not roots:
            raise Difference(f"arbor status names no root: {lines}")
        return roots

    def make_witnesses(self, database, folder):
        out = self.databases / folder
        blocks = ["--block", "1", "--to", str(self.length)]
        done = self.try_run("witness", *self.database(database), *blocks, "--out", str(out), self.chain)
        if done.returncode:
            raise Difference(f"arbor witness: {done.stderr.strip()[-600:]}")
        files = sorted(map(str, out.iterdir()))
        # A Verkle tree has nothing to prove of a block that touches nothing.
        nothing = done.stderr.count("touches nothing") + done.stdout.count("touches nothing")
        if len(files) + nothing != self.length:
            raise Difference(f"arbor witness: {len(files)} files for {self.length} blocks, {nothing} of which touch nothing")
        return files


@dataclass
class Mode:
    """A way, and on which seeds it is tried: those whose remainder by `every` is 0."""

    run: Callable[[Modes], None]
    every: int = 1


ALL = {
    "one-go": Mode(Modes.one_go),
    "restarts": Mode(Modes.restarts),
    "reopened": Mode(Modes.reopened, 2),
    "rollbacks": Mode(Modes.rollbacks),
    "last": Mode(Modes.last),
    "verkle": Mode(Modes.verkle),
    "verkle-2023": Mode(Modes.verkle_2023, 4),
    "ar16mt": Mode(Modes.ar16mt),
    "eip8297": Mode(Modes.eip8297, 2),
    "eip7864": Mode(Modes.eip7864, 2),
    "moves": Mode(Modes.moves),
    "old-proofs": Mode(Modes.old_proofs, 2),
    "witnesses": Mode(Modes.witnesses),
    "verkle-witnesses": Mode(Modes.verkle_witnesses, 4),
    "evm384": Mode(Modes.evm384),
    "mutants": Mode(Modes.mutants),
    "mutant-witnesses": Mode(Modes.mutant_witnesses),
}
