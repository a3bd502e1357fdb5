from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest

from runner.errors import RunnerError
from runner.intake import listing as listing_module
from runner.intake import source as source_module
from runner.intake.files import differences, file_facts, fingerprint
from runner.intake.listing import list_model
from schemas.artifacts.analysis import FileFact
from tests.runner.host.unprivileged import open_to_all, unprivileged
from tests.runner.intake.checkpoints import header_of, write_sparse
from tests.tiny_models import make_tiny_model


def by_name(facts: list[FileFact]) -> dict[str, FileFact]:
    return {fact.name: fact for fact in facts}


def test_what_loading_reads_is_listed_and_nothing_else(tmp_path: Path) -> None:
    make_tiny_model(tmp_path, shards=2)
    for name in (
        "modeling_x.py",
        "chat_template.jinja",
        "merges.txt",
        "tokenizer.model",
        "README.md",
        "x.png",
        "x.bin",
    ):
        (tmp_path / name).write_text("x")
    for name in ("code/helper.py", "additional_chat_templates/tool.jinja", "code/data.json", ".git/hook.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x")
    (tmp_path / "new\nline.json").write_text("x")
    (tmp_path / "folder.json").mkdir()
    listing = list_model(tmp_path)
    assert listing.files == tuple(
        sorted(
            [
                "additional_chat_templates/tool.jinja",
                "chat_template.jinja",
                "code/helper.py",
                "config.json",
                "generation_config.json",
                "merges.txt",
                "model-00001-of-00002.safetensors",
                "model-00002-of-00002.safetensors",
                "model.safetensors.index.json",
                "modeling_x.py",
                "special_tokens_map.json",
                "tokenizer.json",
                "tokenizer.model",
                "tokenizer_config.json",
            ]
        )
    )
    assert listing.other_weights == ("x.bin",)
    assert [fact.name for fact in fingerprint(tmp_path)] == list(listing.files)


def test_facts_are_size_time_and_digests(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "HASHED_WHOLE", 1000)
    (tmp_path / "config.json").write_text("{}")
    write_sparse(tmp_path / "model.safetensors", *header_of({"a": (1000,)}))
    facts = by_name(fingerprint(tmp_path))
    config, weights = facts["config.json"], facts["model.safetensors"]
    assert config.sha256 == hashlib.sha256(b"{}").hexdigest()
    assert (config.size_bytes, config.header_sha256) == (2, None)
    assert config.mtime_ns == (tmp_path / "config.json").stat().st_mtime_ns
    assert weights.sha256 is None
    whole = (tmp_path / "model.safetensors").read_bytes()
    assert weights.header_sha256 == hashlib.sha256(whole[: len(whole) - 2000]).hexdigest()


def test_the_header_of_what_is_no_safetensors_file_is_nothing(tmp_path: Path) -> None:
    (tmp_path / "model.safetensors").write_bytes(b"\xff" * 20)
    assert fingerprint(tmp_path)[0].header_sha256 is None


def test_an_unchanged_folder_has_no_differences(tmp_path: Path) -> None:
    make_tiny_model(tmp_path)
    assert differences(fingerprint(tmp_path), fingerprint(tmp_path)) == []


def test_each_change_is_a_sentence_that_names_the_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(source_module, "HASHED_WHOLE", 100)
    weights = {name: tmp_path / f"{name}.safetensors" for name in ("same", "longer", "header", "touched")}
    for path in weights.values():
        write_sparse(path, *header_of({"a": (4000,)}))
    for name in ("a.json", "b.json", "c.json", "d.json"):
        (tmp_path / name).write_text("{}")
    before = fingerprint(tmp_path)
    write_sparse(weights["longer"], *header_of({"a": (4001,)}))
    write_sparse(weights["header"], *header_of({"b": (4000,)}))
    os.utime(weights["touched"], ns=(1, 1))
    os.utime(tmp_path / "a.json", ns=(1, 1))
    (tmp_path / "b.json").write_text("[]")
    (tmp_path / "c.json").unlink()
    (tmp_path / "e.json").write_text("{}")
    size = weights["same"].stat().st_size
    assert differences(before, fingerprint(tmp_path)) == [
        "b.json has another content.",
        "c.json is gone.",
        "e.json is new.",
        "header.safetensors has another header: other tensors, shapes or dtypes.",
        f"longer.safetensors has {size + 2} bytes instead of {size}.",
        "touched.safetensors was written again since.",
    ]


def test_a_small_weight_file_is_known_by_its_content(tmp_path: Path) -> None:
    make_tiny_model(tmp_path)
    before = fingerprint(tmp_path)
    with (tmp_path / "model.safetensors").open("r+b") as file:
        file.seek(-1, os.SEEK_END)
        file.write(b"\x7f")
    os.utime(tmp_path / "model.safetensors", ns=(1, before[2].mtime_ns))
    assert differences(before, fingerprint(tmp_path)) == ["model.safetensors has another content."]


@pytest.mark.parametrize("limit", ["_LONGEST_LISTING", "_MOST_FILES"])
def test_a_huge_folder_is_no_model(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, limit: str) -> None:
    monkeypatch.setattr(listing_module, limit, 10)
    for number in range(11):
        (tmp_path / f"{number}.json").write_text("{}")
    with pytest.raises(RunnerError, match="more than 10 files") as refused:
        list_model(tmp_path)
    assert refused.value.code == "folder_too_large"


def test_a_folder_that_is_not_there(tmp_path: Path) -> None:
    with pytest.raises(RunnerError) as refused:
        list_model(tmp_path / "gone")
    assert refused.value.code == "file_missing"


def test_files_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text("{}")
    open_to_all(tmp_path)
    (tmp_path / "config.json").chmod(0o000)
    with unprivileged(), pytest.raises(RunnerError, match=r"config\.json cannot be read: Permission denied") as refused:
        fingerprint(tmp_path)
    assert refused.value.code == "file_not_readable"


def test_any_files_can_be_described(tmp_path: Path) -> None:
    (tmp_path / "deep").mkdir()
    (tmp_path / "deep" / "val.jsonl").write_text("{}")
    (fact,) = file_facts(tmp_path, [tmp_path / "deep" / "val.jsonl"])
    assert (fact.name, fact.size_bytes) == ("deep/val.jsonl", 2)
    assert fact.sha256
