"""`python -m tests.agreement matrix FILE.csv`, `words FILE.tsv` and `failures FOLDER`: product against recordings.

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


def _failures(path: Path) -> int:
    from tests.agreement.failures import main

    return main(path)


_TABLES: dict[str, Callable[[Path], int]] = {"failures": _failures, "matrix": _matrix, "words": _words}
_OF_FOLDERS = {"failures"}


def run(arguments: list[str]) -> int:
    """Print the table of one file or folder and return the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.agreement", description=__doc__.splitlines()[0])
    parser.add_argument("table", choices=sorted(_TABLES))
    parser.add_argument("file", type=Path)
    asked = parser.parse_args(arguments)
    of_folder = asked.table in _OF_FOLDERS
    if not (asked.file.is_dir() if of_folder else asked.file.is_file()):
        print(f"{asked.file} is no {'folder' if of_folder else 'file'}.", file=sys.stderr)
        return 2
    try:
        return _TABLES[asked.table](asked.file)
    except BrokenPipeError:  # whoever read the table has read enough, as `head` does
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1


if __name__ == "__main__":
    sys.exit(run(sys.argv[1:]))
