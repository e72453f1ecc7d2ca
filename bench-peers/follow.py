#!/usr/bin/env python3
"""`arbor replay --rpc` follows geth on the loopback, through reorganisations and a restart.

    bench-peers/follow.py [--depths 1,3,10] [--keep]

geth makes a block a second by itself (--dev) and gets transfers. arbor follows it into a database. Then, for each depth, geth
is set back by so many blocks (debug_setHead) and makes others. Then it is stopped for some seconds and started again. At the
end it is set back further than arbor keeps states, and arbor must end with an error that says so. After every step both must
have the same hash and state root at arbor's head, and at last arbor must verify its database. Exit status 1: they differ.
"""

import argparse
import json
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from measure import CommandFailed, require_linux
from nodes import Node, free_port
from sides import Arbor, find_program, peers_folder

# Blocks that arbor can go back.
RETAIN = 16
# Seconds that a step may take.
PATIENCE = 120


def wait_for(what, found):
    end = time.monotonic() + PATIENCE
    while time.monotonic() < end:
        value = found()
        if value:
            return value
        time.sleep(0.2)
    raise CommandFailed(f"{what}: not within {PATIENCE} s")


class DevChain:
    """geth with a chain of its own."""

    def __init__(self, program, folder):
        self.program, self.folder, self.port, self.node = program, folder, free_port(), None

    def start(self):
        alone = ["--nodiscover", "--maxpeers", "0", "--port", free_port(), "--authrpc.port", free_port(), "--ipcdisable"]
        http = ["--http", "--http.port", self.port, "--http.api", "eth,debug,net,web3"]
        command = [self.program, "--dev", "--dev.period", "1", "--datadir", self.folder / "geth", *alone, *http]
        with open(self.folder / "geth.log", "ab") as log:
            process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log)
        self.node = Node("geth", process, f"http://127.0.0.1:{self.port}")
        wait_for("geth listens", self.listens)

    def listens(self):
        try:
            return self.node.call("eth_chainId")
        except OSError:
            return None

    def stop(self):
        if self.node and self.node.process.poll() is None:
            self.node.process.send_signal(signal.SIGTERM)
            self.node.process.wait(timeout=60)

    def genesis(self):
        """The genesis of --dev, which geth prints without the account that it gives all but nine wei of the largest balance."""
        dumped = subprocess.run([self.program, "--dev", "dumpgenesis"], capture_output=True, text=True, check=True).stdout
        genesis = json.loads(dumped)
        genesis["alloc"][self.node.call("eth_accounts")[0]] = {"balance": hex(2**256 - 9)}
        return genesis

    def head(self):
        return int(self.node.call("eth_blockNumber"), 16)

    def block(self, number):
        return self.node.call("eth_getBlockByNumber", hex(number), False)

    def transfer(self, to):
        sender = self.node.call("eth_accounts")[0]
        self.node.call("eth_sendTransaction", {"from": sender, "to": f"0x{to:040x}", "value": hex(10**15 + to)})

    def reaches(self, number):
        wait_for(f"geth has block {number}", lambda: self.head() >= number)


class Follower:
    """arbor, which replays what geth has."""

    def __init__(self, program, folder, url, genesis):
        self.program, self.folder, self.database = program, folder, folder / "db"
        self.log = folder / "arbor.log"
        command = [program, "replay", "--db", self.database, "--rpc", url, "--genesis", genesis, "--retain", RETAIN]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen([str(word) for word in command], stdin=subprocess.DEVNULL, stdout=log, stderr=log)

    def text(self):
        return self.log.read_text(errors="replace")

    def status(self):
        if self.process.poll() is not None:
            raise CommandFailed(f"arbor ended with {self.process.returncode}:\n{self.text()[-2000:]}")
        done = subprocess.run([self.program, "status", "--db", self.database, "--json"], capture_output=True, text=True)
        # At first there is no database, or no version in it.
        return json.loads(done.stdout) if done.returncode == 0 else {}

    def is_at(self, chain, least):
        """Whether arbor is at a block of geth's from this number on, with its hash and root."""
        status = self.status()
        number = status.get("block")
        if number is None or number < least:
            return None
        block = chain.block(number)
        same = block and (block["hash"], block["stateRoot"]) == (status["blockHash"], status["stateRoot"])
        return number if same else None

    def catches_up(self, chain, least):
        return wait_for(f"arbor is at geth's block {least} or later", lambda: self.is_at(chain, least))

    def stop(self):
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGTERM)
            self.process.wait(timeout=60)


def set_back(chain, blocks):
    """Has geth take another branch; returns the head before, and when the branch is longer, nothing of it is left."""
    chain.transfer(0x1000 + blocks)
    before = chain.head()
    old = chain.block(before)["hash"]
    chain.node.call("debug_setHead", hex(before - blocks))
    # Another account gets something on the new branch, so that the states differ too.
    chain.transfer(0x2000 + blocks)
    chain.reaches(before + 1)
    if chain.block(before)["hash"] == old:
        raise CommandFailed(f"geth has the same block {before} after debug_setHead")
    return before


def follow(geth, arbor, folder, depths):
    chain = DevChain(geth, folder)
    follower = None
    try:
        chain.start()
        genesis = folder / "genesis.json"
        genesis.write_text(json.dumps(chain.genesis()))
        follower = Follower(arbor, folder, chain.node.url, genesis)
        chain.transfer(0x1000)
        chain.reaches(max(depths) + 2)
        print(f"followed to block {follower.catches_up(chain, max(depths) + 2)}", flush=True)
        for depth in depths:
            before = set_back(chain, depth)
            print(f"set back {depth} from block {before}: followed to block {follower.catches_up(chain, before + 1)}", flush=True)
        before = chain.head()
        chain.stop()
        time.sleep(3)
        chain.start()
        chain.transfer(0x3000)
        chain.reaches(before + 2)
        print(f"restarted at block {before}: followed to block {follower.catches_up(chain, before + 2)}", flush=True)
        chain.reaches(RETAIN + 6)
        follower.catches_up(chain, RETAIN + 6)
        chain.node.call("debug_setHead", hex(chain.head() - RETAIN - 4))
        code = wait_for("arbor ends", lambda: follower.process.poll())
        said = follower.text().splitlines()[-1]
        print(f"set back {RETAIN + 4}, with {RETAIN} kept: arbor ended with {code}: {said}", flush=True)
        if code != 1:
            raise CommandFailed(f"expected exit 1:\n{follower.text()[-2000:]}")
        verified = subprocess.run([arbor, "verify", "--db", follower.database], capture_output=True, text=True)
        if verified.returncode != 0:
            raise CommandFailed(f"arbor verify: {verified.stdout}{verified.stderr}")
        print("the database verifies")
    finally:
        if follower:
            follower.stop()
        chain.stop()


def main():
    require_linux()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--depths", default="1,3,10")
    parser.add_argument("--keep", action="store_true", help="leave the folder with databases and logs")
    options = parser.parse_args()
    depths = [int(depth) for depth in options.depths.split(",")]
    if max(depths) > RETAIN:
        parser.error(f"--depths: arbor keeps {RETAIN} blocks here")
    places = [peers_folder() / "geth", shutil.which("geth")]
    geth = find_program("geth", "GETH", places, "Run bench-peers/setup.sh, or name it in GETH.")
    folder = Path(tempfile.mkdtemp(prefix="arbor-follow-", dir="/var/tmp"))
    try:
        follow(geth, Arbor().program, folder, depths)
    finally:
        if options.keep:
            print(f"left in {folder}")
        else:
            shutil.rmtree(folder)


if __name__ == "__main__":
    try:
        main()
    except CommandFailed as failure:
        sys.exit(f"error: {failure}")
