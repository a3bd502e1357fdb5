"""`python -m tests.agreement matrix FILE.csv` and `python -m tests.agreement words FILE.tsv`.

Exit status: 0 where everything agrees, 1 where something does not or could not be checked, 2 for a wrong command.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Callable
from pathlib import Path


def _matrix(path: Path) -> int:
    from tests.agreement.matrix import main

    return main(path)


def _words(path: Path) -> int:
    from tests.agreement.words import main

    return main(path)


_TABLES: dict[str, Callable[[Path], int]] = {"matrix": _matrix, "words": _words}


def run(arguments: list[str]) -> int:
    """Print the table of one file and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.agreement", description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=sorted(_TABLES))
    parser.add_argument("file", type=Path)
    asked = parser.parse_args(arguments)
    if not asked.file.is_file():
        print(f"{asked.file} is no file.", file=sys.stderr)
        return 2
    try:
        return _TABLES[asked.table](asked.file)
    except BrokenPipeError:  # whoever read the table has read enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
