"""`python -m tests.bench.logs [LINES]`: how fast a log is read, and that memory does not grow with it.

The log is read as the daemon reads it, in a fresh process, beside a process that only goes through its lines. Its lines
are of the kinds that a quantization prints: coloured messages, bars that redraw themselves, table rows, measurements.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

LINES = 1_000_000
_PIECE = 10_000  # lines that are written at once


@dataclass(frozen=True)
class Reading:
    """One process that read a log. Bytes are of resident memory: before the log, after it, and at most."""

    seconds: float
    lines: int
    log_bytes: int
    before_bytes: int
    after_bytes: int
    peak_bytes: int

    @property
    def lines_per_second(self) -> float:
        """Lines that ended within a second."""
        return self.lines / self.seconds

    def __str__(self) -> str:
        """Rate and memory."""
        before, after, peak = (
            f"{value / 2**20:.1f}" for value in (self.before_bytes, self.after_bytes, self.peak_bytes)
        )
        return (
            f"{self.lines:,} lines, {self.log_bytes / 1e6:.1f} MB in {self.seconds:.2f} s: "
            f"{self.log_bytes / 1e6 / self.seconds:.1f} MB/s, {self.lines_per_second:,.0f} lines/s; "
            f"memory {before} MiB before, {after} MiB after, {peak} MiB at most"
        )


@dataclass(frozen=True)
class Logs:
    """A long log and one of a tenth of it, read as the daemon reads them, and the long one only gone through."""

    long: Reading
    short: Reading
    plain: Reading

    @property
    def growth_bytes(self) -> int:
        """How much more memory the long log took at most than the short one."""
        return self.long.peak_bytes - self.short.peak_bytes

    def __str__(self) -> str:
        """All readings and what follows from them."""
        return (
            f"log as the daemon reads it: {self.long}\n"
            f"a short one the same way:   {self.short}\n"
            f"only gone through:          {self.plain}\n"
            f"the long one took {self.growth_bytes / 2**20:+.1f} MiB more than the short one, and "
            f"{self.long.seconds / self.plain.seconds:.1f} times as long as going through its lines"
        )


def measure(folder: Path, lines: int = LINES) -> Logs:
    """Write both logs into `folder` and read them, each in a process of its own."""
    long, short = folder / "long.log", folder / "short.log"
    write(long, lines)
    write(short, lines // 10)
    return Logs(_in_process("follow", long), _in_process("follow", short), _in_process("plain", long))


def write(path: Path, lines: int) -> None:
    """A log of so many lines. A bar that redraws itself is a line for each time that it does."""
    with path.open("wb") as file:
        for start in range(0, lines, _PIECE):
            file.write(b"".join(_line(number, lines) for number in range(start, min(start + _PIECE, lines))))


def _line(number: int, lines: int) -> bytes:
    match number % 10:
        case 0:
            return b"\x1b[32m[QUARK-INFO]: layer model.layers.%d.self_attn.q_proj was replaced\x1b[0m\n" % (number % 80)
        case 1:
            return b"| lm_head                   | %d                       |\n" % (number % 7)
        case 2:
            return b'{"ptq": "memory", "gpu_peak_bytes": %d}\n' % (number * 1000)
        case 3 | 4:
            return b"a line of a library that warns of something which nobody has to know, number %d\n" % number
        case _:
            percent = number * 100 // lines
            return b"\rCalibrating activations: %3d%%|###       | %d/%d [01:10<02:40,  1.46it/s]" % (
                percent,
                number,
                lines,
            )


def _in_process(kind: str, path: Path) -> Reading:
    command = [sys.executable, "-m", "tests.bench.logs", f"--{kind}", str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return Reading(**json.loads(done.stdout))


def _read(kind: str, path: Path) -> Reading:
    """Read in this process."""
    from runner.runs.following import LogFollower  # what it costs to import is no part of the reading

    follower = LogFollower(path)
    before, began = _memory("VmRSS"), time.perf_counter()
    if kind == "--follow":
        follower.read_on()
    else:
        for _ in _plain_lines(path):
            pass
    seconds = time.perf_counter() - began
    count = sum(1 for _ in _plain_lines(path))
    return Reading(seconds, count, path.stat().st_size, before, _memory("VmRSS"), _memory("VmHWM"))


def _plain_lines(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", errors="replace") as file:  # universal newlines: \r ends a line as well
        yield from file


def _memory(name: str) -> int:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith(f"{name}:"):
            return int(line.split()[1]) * 1024
    raise LookupError(name)


def main(arguments: list[str]) -> None:
    """Measure and print; or read a log in this process and print that as JSON."""
    if len(arguments) == 2 and arguments[0] in {"--follow", "--plain"}:
        print(json.dumps(vars(_read(arguments[0], Path(arguments[1])))))
        return
    with tempfile.TemporaryDirectory() as folder:
        print(measure(Path(folder), int(arguments[0]) if arguments else LINES))


if __name__ == "__main__":
    main(sys.argv[1:])
