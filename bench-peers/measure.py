"""What a command and all its children use, by the operating system's count (Linux only).

Bytes written are `write_bytes` of /proc/self/io: once a child has been waited for, Linux adds its counters, with those of
the children it waited for, to its parent's. So the difference over one command is what its whole process tree
wrote, nothing sampled and nothing missed at exit. This process writes nothing meanwhile: the command's output
goes straight to a file. The kernel counts a page when it becomes dirty, so a later sync changes nothing; it is done all
the same, and timed apart, so that one run's write-back is not paid for by the next.
"""

import os
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path


@dataclass
class Usage:
    """Resources of one command or, added up, of several in a row."""

    wall_s: float = 0.0
    user_s: float = 0.0
    sys_s: float = 0.0
    # The largest of the processes, not their sum. At least that of this script (some 20 MB), from which they are forked.
    peak_rss_bytes: int = 0
    read_bytes: int = 0
    written_bytes: int = 0
    # Time of the sync after the command; not in wall_s.
    sync_s: float = 0.0

    def __add__(self, other):
        both = {name: value + getattr(other, name) for name, value in asdict(self).items()}
        both["peak_rss_bytes"] = max(self.peak_rss_bytes, other.peak_rss_bytes)
        return Usage(**both)


class CommandFailed(Exception):
    """A command that exited with an error; the message holds the end of its output."""


def _io_counters():
    lines = Path("/proc/self/io").read_text().splitlines()
    return {name: int(value) for name, value in (line.split(": ") for line in lines)}


def _written_for(report):
    """Bytes of a report's pages, which are among those written if it lies on a disk."""
    page = os.sysconf("SC_PAGE_SIZE")
    on_disk = os.major(report.stat().st_dev) != 0
    return -(-report.stat().st_size // page) * page if on_disk else 0


def run(command, log, report=None):
    """Runs a command to its end with its output in the file `log`; returns its Usage.

    `report` is a file that the command writes for the measurement alone. Its pages are taken off the bytes written: two trees' reports differ in length, on a small chain by
    a fifth of what is written. What lay there before goes away.
    """
    if report:
        Path(report).unlink(missing_ok=True)
    os.sync()
    before = _io_counters()
    with open(log, "ab") as output:
        start = time.monotonic()
        child = subprocess.Popen(
            [str(word) for word in command],
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
        _, status, used = os.wait4(child.pid, 0)
        wall = time.monotonic() - start
    child.returncode = os.waitstatus_to_exitcode(status)
    start = time.monotonic()
    os.sync()
    synced = time.monotonic() - start
    after = _io_counters()
    if child.returncode != 0:
        tail = Path(log).read_text(errors="replace")[-2000:]
        raise CommandFailed(f"exit {child.returncode}: {' '.join(map(str, command))}\n{tail}")
    if report and not Path(report).exists():
        raise CommandFailed(f"no report {report}: {' '.join(map(str, command))}")
    return Usage(
        wall_s=wall,
        user_s=used.ru_utime,
        sys_s=used.ru_stime,
        peak_rss_bytes=used.ru_maxrss * 1024,
        read_bytes=after["read_bytes"] - before["read_bytes"],
        written_bytes=after["write_bytes"] - before["write_bytes"] - (_written_for(Path(report)) if report else 0),
        sync_s=synced,
    )


def disk_bytes(folder):
    """Bytes of the files under a folder: their length, or what is allocated to them where that is less.

    Stores allocate ahead (geth's log on a small chain: 885 MB for 3), and hold files with holes: neither is content.
    """
    states = (path.lstat() for path in Path(folder).rglob("*") if path.is_file())
    return sum(min(state.st_size, state.st_blocks * 512) for state in states)


def machine():
    """The machine in the form of the report envelope (docs/design/report-format.md)."""

    def field(path, name):
        for line in Path(path).read_text().splitlines():
            key, _, value = line.partition(":")
            if key.strip() == name:
                return value.strip()
        return None

    wanted = "ssse3 sse4_1 avx avx2 bmi2 adx sha_ni gfni vaes avx512f avx512vl avx512ifma asimd sha2 sha3 sve".split()
    flags = (field("/proc/cpuinfo", "flags") or field("/proc/cpuinfo", "Features") or "").split()
    uname = os.uname()
    return {
        "cpu": field("/proc/cpuinfo", "model name"),
        "cores": len(os.sched_getaffinity(0)),
        "memory_bytes": int(field("/proc/meminfo", "MemTotal").split()[0]) * 1024,
        "simd": [name for name in wanted if name in flags],
        "os": f"{uname.sysname} {uname.release}",
        "arch": uname.machine,
    }


def require_linux():
    """Stops with a message where the counters do not exist."""
    if not sys.platform.startswith("linux"):
        sys.exit("these measurements read /proc: Linux only")
