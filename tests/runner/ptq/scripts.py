"""Running the scripts for the quantization interpreter as programs, and reading what they say."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

SCRIPTS = Path(__file__).parents[3] / "runner" / "ptq"
needs_engine = pytest.mark.skipif(importlib.util.find_spec("quark") is None, reason="amd-quark is not installed here")


def run_script(name: str, *arguments: object, timeout: float = 300) -> subprocess.CompletedProcess[str]:
    """Run one script with this interpreter, offline, and return what it said."""
    return subprocess.run(
        [sys.executable, str(SCRIPTS / name), *map(str, arguments)],
        env={**os.environ, "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        timeout=timeout,
        check=False,
    )


def events_of(output: str) -> list[dict[str, Any]]:
    """The events in an output, in order."""
    return [json.loads(line) for line in output.splitlines() if line.startswith('{"ptq"')]


def loads_before_it_ends(name: str, *arguments: object) -> tuple[int, set[str]]:
    """The exit status of a script, and the top-level modules that it had loaded when it ended."""
    code = (
        "import runpy, sys\n"
        "sys.argv = sys.argv[1:]\n"
        "try:\n"
        "    runpy.run_path(sys.argv[0], run_name='__main__')\n"
        "except SystemExit as end:\n"
        "    status = end.code\n"
        "print()\n"
        "print(status, *{name.split('.')[0] for name in sys.modules})\n"
    )
    command = [sys.executable, "-c", code, str(SCRIPTS / name), *map(str, arguments)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    status, *modules = done.stdout.splitlines()[-1].split()
    return int(status), set(modules)
