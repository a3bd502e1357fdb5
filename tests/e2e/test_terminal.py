"""`ptq-runner` as a person uses it: four steps, a question at each, and one sentence for everything that goes wrong."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest
import yaml

from tests.e2e.host import Host
from tests.peers import interpreter


class Person:
    """Somebody at a terminal with a folder of their own."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.folder = host.folder / "desk"
        self.folder.mkdir()

    def types(self, *arguments: str, says: str = "") -> subprocess.CompletedProcess[str]:
        """Run a command and answer its questions."""
        command = [sys.executable, "-m", "runner.service", "--config", str(self.host.config), *arguments]
        done = subprocess.run(
            command, input=says, capture_output=True, text=True, cwd=self.folder, timeout=120, check=False
        )
        assert "Traceback" not in done.stderr + done.stdout
        return done

    def goes_to_the_command(self, scheme: str = "fp8") -> None:
        """Steps 1 to 3."""
        for arguments in (
            ("intake", "tiny", "--output-dir", str(self.host.outputs / "out")),
            ("plan", "model_analysis.json", "--scheme", scheme, "--kv-cache", "none", "--dataset", "text.txt",
             "--samples", "4", "--seq-len", "32"),
            ("manifest", "quant_plan.json"),
        ):  # fmt: skip
            done = self.types(*arguments)
            assert done.returncode == 0, done.stderr


@pytest.fixture
def person(host: Host) -> Person:
    """Somebody at a terminal."""
    interpreter.tell(host.engine)
    return Person(host)


def test_the_four_steps_end_in_an_accepted_result(person: Person) -> None:
    person.goes_to_the_command()
    done = person.types("run", "run_manifest.yaml", says="looks good\nok\nrun it\naccept\n")
    assert done.returncode == 0, done.stderr
    for shown in ("Model analysis", "Quantization plan", "The exact command", "Perplexity", "F8_E4M3", "Accepted"):
        assert shown in done.stdout
    report = json.loads((person.folder / "validation_report.json").read_text())
    assert report["status"] == "success"
    listed = person.types("runs", "--json")
    (run,) = json.loads(listed.stdout)
    assert run["state"] == "succeeded"
    assert "calibrating" in person.types("logs", run["id"]).stdout
    assert "succeeded" in person.types("show", run["id"]).stdout


@pytest.mark.parametrize(
    ("says", "checkpoint"),
    [
        ("", "analysis"),
        ("no\n", "analysis"),
        ("ok\nno\n", "plan"),
        ("ok\nok\nno\n", "command"),
        ("ok\nok\nok\n", "command"),
        ("ok\nok\nlooks good\nwhat does it cost?\n", "command"),
    ],
)
def test_nothing_runs_without_a_yes_at_every_checkpoint(person: Person, says: str, checkpoint: str) -> None:
    person.goes_to_the_command()
    done = person.types("run", "run_manifest.yaml", says=says)
    assert done.returncode == 1
    assert f"checkpoint of the {checkpoint}" in done.stderr
    assert person.host.starts() == 0
    assert person.host.client.runs(None, 5) == []


def test_what_cannot_run_is_said_before_anybody_is_asked(person: Person) -> None:
    person.goes_to_the_command()
    person.types("run", "run_manifest.yaml", says="ok\nok\ngo\nok\n")
    again = person.types("run", "run_manifest.yaml", says="ok\nok\ngo\nok\n")
    assert again.returncode == 1
    assert "handed in before" in again.stderr
    occupied = person.types("run", "run_manifest.yaml", "--key", "another", says="ok\nok\ngo\nok\n")
    assert occupied.returncode == 1
    assert "is not empty" in occupied.stderr
    assert "Checkpoint" not in again.stderr + occupied.stderr
    assert person.host.starts() == 1


def test_a_rejected_result_is_not_accepted(person: Person) -> None:
    person.goes_to_the_command()
    done = person.types("run", "run_manifest.yaml", says="ok\nok\ngo\nno\n")
    assert done.returncode == 1
    assert "checkpoint of the result" in done.stderr
    assert "Accepted" not in done.stdout


def test_the_json_of_a_run_is_json_alone(person: Person) -> None:
    person.goes_to_the_command()
    done = person.types("run", "run_manifest.yaml", "--json", says="ok\nok\nyes\nok\n")
    assert json.loads(done.stdout)["state"] == "succeeded"


def test_a_blocked_plan_says_why_and_makes_no_command(person: Person) -> None:
    person.types("intake", "tiny")
    done = person.types("plan", "model_analysis.json", "--scheme", "mx6", "--dataset", "text.txt")
    assert done.returncode == 1
    assert "export" in done.stderr
    refused = person.types("manifest", "quant_plan.json")
    assert refused.returncode == 1
    assert not (person.folder / "run_manifest.yaml").exists()


WRONG_DOCUMENTS = [
    ("plan", "model_analysis.json", None, "does not exist"),
    ("plan", "model_analysis.json", "{", "is broken"),
    ("plan", "model_analysis.json", "[]", "not a valid model_analysis"),
    ("plan", "model_analysis.json", '{"analysis_status": "complete"}', "required property"),
    ("manifest", "quant_plan.json", None, "ptq-runner plan"),
    ("run", "run_manifest.yaml", None, "ptq-runner manifest"),
    ("run", "run_manifest.yaml", "a: [1", "is broken"),
    ("run", "run_manifest.yaml", "&a [*a]", "a document has no aliases"),
]


@pytest.mark.parametrize(("command", "name", "content", "words"), WRONG_DOCUMENTS)
def test_a_wrong_document_is_named(person: Person, command: str, name: str, content: str | None, words: str) -> None:
    if content is not None:
        (person.folder / name).write_text(content)
    done = person.types(command, name)
    assert done.returncode == 1
    assert words in done.stderr
    assert len(done.stderr.strip().splitlines()) <= 2


def test_wrong_settings_are_named_in_one_line(tmp_path: Path) -> None:
    config = tmp_path / "bad.yaml"
    config.write_text("outputs: {mode: 'rw-r'}\n")
    command = [sys.executable, "-m", "runner.service", "--config", str(config), "runs"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 1
    assert "outputs.mode" in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        ({"quark": {"python": "/nowhere/python"}}, "interpreter_missing"),
        ({"listen": "https://127.0.0.1:8470"}, "bad_setting"),
        ({"state_dir": "/proc/nothing"}, "bad_state_dir"),
    ],
)
def test_the_doctor_never_falls(settings: dict[str, object], code: str, tmp_path: Path) -> None:
    config = tmp_path / "runner.yaml"
    config.write_text(yaml.safe_dump({"state_dir": str(tmp_path / "state"), **settings}))
    command = [sys.executable, "-m", "runner.service", "--config", str(config), "doctor"]
    said = subprocess.run(command, capture_output=True, text=True, timeout=120, check=False)
    done = subprocess.run([*command, "--json"], capture_output=True, text=True, timeout=120, check=False)
    told = json.loads(done.stdout)
    assert (said.returncode, done.returncode, told["verdict"]) == (1, 1, "unfit")
    assert code in {finding["code"] for finding in told["findings"] if finding["severity"] == "blocks"}
    assert "Traceback" not in said.stderr + done.stderr
    assert said.stdout.rstrip().splitlines()[-1].startswith("Runs cannot work here")


def test_the_doctor_says_whether_runs_can_work_here(person: Person) -> None:
    done = person.types("doctor", "--json")
    told = json.loads(done.stdout)
    codes = {finding["code"]: finding["severity"] for finding in told["findings"]}
    assert (done.returncode, told["verdict"]) == (0, "fit"), done.stdout
    assert codes["engine"] == "informs"
    assert codes["datasets"] == "informs"
