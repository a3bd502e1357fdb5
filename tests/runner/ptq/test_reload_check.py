"""The verdict of the reload check: the checkpoint's fault, the device's, or nobody's."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.ptq import reload_check
from tests.runner.ptq.scripts import events_of

SAID = [
    (reload_check.BadCheckpoint("some of its logits are not finite numbers."), False),
    (ValueError("The loaded checkpoint misses the keys ['lm_head.weight']"), False),
    (OSError("incomplete metadata, file not fully covered"), False),
    (KeyError("quantization_config"), False),
    (RuntimeError("qdq_mxfp4 is only implemented in CUDA devices!"), None),
    (NotImplementedError("\"addmm_impl_cpu_\" not implemented for 'CPU'"), None),
    (RuntimeError("CUDA out of memory. Tried to allocate 2.00 GiB"), None),
    (RuntimeError("HIP error: no kernel image is available for execution on the device"), None),
    (MemoryError(), None),
    (ModuleNotFoundError("No module named 'quark'"), None),
]


@pytest.mark.parametrize(("problem", "ok"), SAID, ids=[type(case[0]).__name__ for case in SAID])
def test_only_what_says_something_of_the_checkpoint_condemns_it(
    problem: Exception,
    ok: bool | None,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    def check(_options: object) -> dict[str, object]:
        raise problem

    monkeypatch.setattr(reload_check, "check", check)
    status = reload_check.main(["--model_dir", str(tmp_path), "--device", "cpu"])
    said = capsys.readouterr()
    first, verdict = events_of(said.out)
    assert first == {"ptq": "phase", "phase": "reloading"}
    assert verdict["ptq"] == "reload"
    assert verdict["ok"] is ok
    assert verdict["reason"]
    assert status == (1 if ok is False else 0)
    assert ("Traceback" in said.err) is not isinstance(problem, reload_check.BadCheckpoint)


def test_a_folder_without_a_checkpoint_gets_one_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert reload_check.main(["--model_dir", str(tmp_path), "--device", "cpu"]) == 1
    said = capsys.readouterr()
    reason = f"{tmp_path} is not a checkpoint: it has no config.json."
    assert events_of(said.out)[-1] == {"ptq": "reload", "ok": False, "reason": reason}
    assert said.err.strip() == reason


@pytest.mark.parametrize(
    "arguments", [[], ["--model_dir", "m", "--device", "tpu"], ["--model_dir", "m", "--device", "cpu", "--multi_gpu"]]
)
def test_a_wrong_command_line_is_refused(arguments: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as end:
        reload_check.main(arguments)
    assert end.value.code == 2
    assert capsys.readouterr().out == ""
