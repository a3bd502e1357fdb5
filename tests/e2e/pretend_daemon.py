"""The daemon on a host whose GPUs are pretended: `python -m tests.e2e.pretend_daemon CONFIG ROOT`."""

from __future__ import annotations

import sys
from pathlib import Path

from runner.service.daemon import run_daemon
from runner.settings import load_settings

if __name__ == "__main__":
    run_daemon(load_settings(Path(sys.argv[1])), Path(sys.argv[2]))
