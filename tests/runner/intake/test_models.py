from __future__ import annotations

import asyncio
import itertools
import logging
import os
import shutil
import struct
import subprocess
import sys
from pathlib import Path

import pytest

from runner.errors import RunnerError
from runner.intake import analyse, fingerprint
from runner.intake.models import Models
from runner.intake.snapshot import source_of
from runner.settings import ModelSettings
from schemas.artifacts.analysis import ModelAnalysis
from schemas.digest import digest
from tests.peers.hub import BreaksOff, Drips, Fault, Hangs, IgnoresRange, Raw, Says
from tests.runner.intake.checkpoints import mixtral_8x7b, write_checkpoint
from tests.runner.intake.engine import CATALOGUE, FACTS
from tests.runner.intake.hub_bench import TOKEN, HubBench
from tests.tiny_models import make_tiny_model


def refused(
    bench: HubBench, asked: str = "org/tiny", revision: str | None = None, *, code: bool = False
) -> RunnerError:
    with pytest.raises(RunnerError) as caught:
        asyncio.run(bench.models.find(asked, revision, code=code))
    error = caught.value
    assert error.message.endswith(".")
    assert error.message.isprintable()
    assert error.hint.endswith(".")
    assert "\n" not in error.message + error.hint
    assert TOKEN not in str(error)
    return error


def without_place(analysis: ModelAnalysis) -> dict[str, object]:
    """What an analysis says of the model itself, and nothing of where it lies."""
    data = analysis.model_dump(mode="json")
    for name in ("model_path", "source", "revision", "downloaded", "hub_token"):
        del data["model"][name]
    del data["size"]["files"]
    return data


def put_into_cache(bench: HubBench, commit: str, ref: str = "main", folder: Path | None = None) -> Path:
    """A snapshot in the cache that Hugging Face programs share."""
    repository = bench.folder / "hf" / "models--org--tiny"
    (repository / "refs").mkdir(parents=True, exist_ok=True)
    (repository / "refs" / ref).write_text(commit)
    return Path(shutil.copytree(folder or bench.tiny, repository / "snapshots" / commit))


def test_a_model_on_the_hub_is_analysed_without_one_byte_of_its_weights(bench: HubBench) -> None:
    analysis = asyncio.run(bench.analysed())
    assert bench.peer.bytes_of("weight") == 0
    assert bench.peer.bytes_of("header") == sum(
        8 + struct.unpack("<Q", path.read_bytes()[:8])[0] for path in bench.tiny.glob("*.safetensors")
    )
    assert len(bench.peer.calls) == 5 + 3 * 3  # the commit, four small files, and for each of three headers three
    facts = analysis.model
    assert (facts.model_path, facts.revision, facts.source) == ("org/tiny", bench.commit, "huggingface_id")
    assert (facts.downloaded, facts.hub_token) == (False, "")
    here = bench.folder / "models" / "tiny"
    shutil.copytree(bench.tiny, here)
    assert without_place(analysis) == without_place(asyncio.run(bench.analysed("tiny")))


def test_files_are_known_by_what_the_hub_tells(bench: HubBench) -> None:
    on_hub = {fact.name: fact for fact in asyncio.run(bench.analysed()).size.files}
    for local in fingerprint(bench.tiny):
        fact = on_hub.pop(local.name)
        assert (fact.size_bytes, fact.header_sha256, fact.mtime_ns) == (local.size_bytes, local.header_sha256, 0)
        # What is neither read here nor in LFS has no digest: the commit pins it.
        assert fact.sha256 in {local.sha256, None}
        assert (fact.sha256 is None) == (local.name == "special_tokens_map.json")
    assert on_hub == {}


def test_the_second_time_asks_for_the_commit_alone_and_the_same_commit_for_nothing(bench: HubBench) -> None:
    first = asyncio.run(bench.analysed())
    bench.peer.forget()
    assert digest(asyncio.run(bench.analysed())) == digest(first)
    assert [call.path for call in bench.peer.calls] == ["/api/models/org/tiny/revision/main?blobs=true"]
    bench.peer.forget()
    bench.peer.fail(".", Hangs())
    assert digest(asyncio.run(bench.analysed("org/tiny", bench.commit))) == digest(first)
    location = asyncio.run(bench.models.again(first.model))
    assert analyse(location, CATALOGUE, FACTS, bench.settings) == first
    assert fingerprint(source_of(location)) == first.size.files
    assert bench.peer.calls == []


def test_a_branch_that_moves_means_the_new_commit_and_the_analysis_keeps_the_old_one(bench: HubBench) -> None:
    first = asyncio.run(bench.analysed())
    newer = bench.peer.add("org/tiny", make_tiny_model(bench.folder / "upstream" / "newer", layers=3))
    second = asyncio.run(bench.analysed())
    assert (first.model.revision, second.model.revision) == (bench.commit, newer)
    assert (first.model.hidden_layers, second.model.hidden_layers) == (2, 3)
    assert asyncio.run(bench.models.again(first.model)).revision == bench.commit


@pytest.mark.parametrize(
    ("asked", "revision"),
    [
        ("org/tiny", "v1"),
        ("org/tiny", "refs/pr/1"),
        ("hf://org/tiny@v1", None),
        ("hf://models/org/tiny", "v1"),
        ("https://huggingface.co/org/tiny/tree/v1", None),
        ("https://hf.co/org/tiny/blob/v1/config.json", None),
        ("https://huggingface.co/org/tiny", "v1"),
    ],
)
def test_a_revision_is_resolved_to_its_commit(bench: HubBench, asked: str, revision: str | None) -> None:
    other = make_tiny_model(bench.folder / "upstream" / "other", layers=1)
    tagged = bench.peer.add("org/tiny", other, ref="v1")
    bench.peer.repositories["org/tiny"].refs["refs/pr/1"] = tagged
    location = asyncio.run(bench.models.find(asked, revision))
    assert (location.revision, location.asked, location.downloaded) == (tagged, "org/tiny", False)


@pytest.mark.parametrize(
    "asked", ["hf://org", "hf://", "https://example.org/org/tiny", "http://[", "https://huggingface.co/", "hf://a/b/c"]
)
def test_an_address_of_no_model(bench: HubBench, asked: str) -> None:
    assert refused(bench, asked).code == "bad_model_name"
    assert bench.peer.calls == []


def test_an_address_and_another_revision(bench: HubBench) -> None:
    assert refused(bench, "hf://org/tiny@v1", "v2").code == "bad_revision"


def test_a_snapshot_on_this_host_is_taken_first(bench: HubBench) -> None:
    path = put_into_cache(bench, bench.commit)
    location = asyncio.run(bench.models.find("org/tiny"))
    assert (location.path, location.downloaded, location.newer) == (path, True, None)
    assert len(bench.peer.calls) == 1  # whether there is a newer one
    bench.peer.forget()
    assert asyncio.run(bench.models.find("org/tiny", bench.commit)).path == path
    assert bench.peer.calls == []


def test_a_newer_commit_on_the_hub_is_told_and_not_taken(bench: HubBench) -> None:
    put_into_cache(bench, "a" * 40)
    analysis = asyncio.run(bench.analysed())
    (risk,) = [risk for risk in analysis.risks if risk.code == "snapshot_older"]
    assert "aaaaaaa" in risk.message
    assert bench.commit[:7] in risk.message
    assert bench.commit in risk.recovery_hint
    assert analysis.model.revision == "a" * 40
    assert asyncio.run(bench.models.find("org/tiny", bench.commit)).downloaded is False


def test_a_silent_hub_changes_nothing_for_a_snapshot_on_this_host(bench: HubBench) -> None:
    path = put_into_cache(bench, bench.commit)
    bench.peer.fail(".", Says(500))
    assert asyncio.run(bench.models.find("org/tiny")).path == path


def test_a_snapshot_with_no_weights_is_not_one(bench: HubBench) -> None:
    path = put_into_cache(bench, bench.commit)
    for shard in list(path.glob("*.safetensors"))[:1]:
        shard.unlink()
    location = asyncio.run(bench.models.find("org/tiny"))
    assert (location.downloaded, location.revision) == (False, bench.commit)
    (path / "config.json").unlink()
    assert asyncio.run(bench.models.find("org/tiny")).downloaded is False


def test_a_folder_that_is_a_hub_id_too_is_asked_back(bench: HubBench) -> None:
    folder = Path(shutil.copytree(bench.tiny, bench.folder / "models" / "org" / "tiny"))
    error = refused(bench)
    assert error.code == "ambiguous_model"
    assert str(folder) in error.message
    assert "127.0.0.1" in error.message
    assert str(folder) in error.hint
    assert "hf://org/tiny" in error.hint
    assert asyncio.run(bench.models.find(str(folder))).source == "local"
    assert asyncio.run(bench.models.find("hf://org/tiny")).source == "huggingface_id"
    assert "hf://org/tiny" in refused(bench, "org/tiny", "main").hint
    bench.peer.fail(".", Says(503))
    assert "could not be asked" in refused(bench).message  # unknown is not the same as no


def test_a_folder_whose_name_is_no_model_on_the_hub(bench: HubBench) -> None:
    folder = Path(shutil.copytree(bench.tiny, bench.folder / "models" / "team" / "tiny"))
    location = asyncio.run(bench.models.find("team/tiny"))
    assert (location.path, location.source) == (folder, "local")


def test_a_name_without_owner_is_asked_back(bench: HubBench) -> None:
    bench.peer.add("other/Tiny", bench.tiny)
    bench.peer.add("other/tiny-large", bench.tiny)
    error = refused(bench, "tiny")
    assert error.code == "ambiguous_model"
    assert "could be org/tiny, other/Tiny." in error.message
    unknown = refused(bench, "nothing-like-it")
    assert unknown.code == "model_missing"
    assert "Qwen/Qwen3-8B" in unknown.hint
    bench.peer.fail(".", Says(500))
    assert refused(bench, "tiny").code == "model_missing"


def test_where_the_hub_is_off_it_is_never_asked(bench: HubBench) -> None:
    off = bench.settings.model_copy(update={"models": ModelSettings(roots=bench.settings.models.roots)})
    analysis = asyncio.run(bench.analysed())
    bench.peer.forget()
    models = Models(off)
    for asked in ("org/tiny", "hf://org/tiny", "https://huggingface.co/org/tiny"):
        with pytest.raises(RunnerError) as caught:
            asyncio.run(models.find(asked))
        assert caught.value.code == "hub_off"
    with pytest.raises(RunnerError) as caught:
        asyncio.run(models.again(analysis.model))
    assert caught.value.code == "hub_off"
    assert bench.peer.calls == []


@pytest.mark.parametrize("update", [{"revision": None}, {"revision": "main"}, {"model_path": "../../etc"}])
def test_an_analysis_that_names_no_commit(bench: HubBench, update: dict[str, str | None]) -> None:
    model = asyncio.run(bench.analysed()).model.model_copy(update=update)
    with pytest.raises(RunnerError) as caught:
        asyncio.run(bench.models.again(model))
    assert caught.value.code == "analysis_without_commit"


def test_two_who_ask_at_the_same_time_ask_once(bench: HubBench) -> None:
    async def both() -> None:
        first, second, third = (asyncio.ensure_future(bench.models.find("org/tiny")) for _ in range(3))
        await asyncio.sleep(0)
        third.cancel()  # who gives up does not stop it for the others
        assert await first == await second

    asyncio.run(both())
    assert len(bench.peer.calls) == 14


def test_code_is_fetched_only_where_it_is_asked_for(bench: HubBench) -> None:
    (bench.tiny / "modeling_tiny.py").write_text("raise RuntimeError")
    commit = bench.peer.add("org/tiny", bench.tiny)
    without = asyncio.run(bench.analysed())
    location = asyncio.run(bench.models.find("org/tiny"))
    assert not (location.path / "modeling_tiny.py").exists()
    kept = asyncio.run(bench.models.find("org/tiny", commit, code=True))
    assert (kept.path / "modeling_tiny.py").read_text() == "raise RuntimeError"
    # Who asked before does not change what an analysis says.
    assert asyncio.run(bench.analysed()) == without


def test_the_token_goes_to_the_hub_alone_and_its_owner_is_said(
    bench: HubBench, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    bench.peer.repositories["org/tiny"].private = True
    bench.peer.repositories["org/tiny"].gated = True
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    analysis = asyncio.run(bench.analysed())
    assert analysis.model.hub_token == "HF_TOKEN of the runner"
    assert {(call.server, call.token) for call in bench.peer.calls} == {("hub", TOKEN), ("cdn", "")}
    assert TOKEN not in caplog.text + analysis.model_dump_json() + repr(bench.models)
    for path in bench.settings.state_dir.rglob("*"):
        assert path.is_dir() or TOKEN.encode() not in path.read_bytes()


def test_the_token_of_the_account(bench: HubBench, monkeypatch: pytest.MonkeyPatch) -> None:
    file = bench.folder / "token"
    file.write_text(f"{TOKEN}\n")
    monkeypatch.setattr("huggingface_hub.constants.HF_TOKEN_PATH", str(file))
    assert asyncio.run(bench.analysed()).model.hub_token == "the token file of the runner's account"


def test_a_token_is_not_sent_where_a_redirect_leads(bench: HubBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    moved = f"{bench.peer.cdn_url}/org/tiny/{bench.commit}/config.json"
    bench.peer.fail("resolve/.*/config.json", Says(307, headers=(("Location", moved),)))
    asyncio.run(bench.models.find("org/tiny"))
    assert {call.token for call in bench.peer.calls if call.server == "cdn"} == {""}


def test_a_redirect_within_the_hub_is_followed(bench: HubBench) -> None:
    bench.peer.fail(
        "/api/models/old/name/", Says(307, headers=(("Location", "/api/models/org/tiny/revision/main?blobs=true"),))
    )
    bench.peer.repositories["old/name"] = bench.peer.repositories["org/tiny"]
    assert asyncio.run(bench.models.find("old/name")).revision == bench.commit


GATED = {"gated": True}
PRIVATE = {"private": True}


@pytest.mark.parametrize(
    ("options", "token", "asked", "code", "words"),
    [
        (GATED, None, "org/x", "hub_gated", "without a token"),
        (GATED, "hf_other", "org/x", "hub_gated", "the account of HF_TOKEN of the runner"),
        (PRIVATE, None, "org/x", "hub_private_or_missing", "does not exist, or it is private"),
        (PRIVATE, "hf_other", "org/x", "hub_model_missing", "may not see it"),
        ({}, None, "org/nowhere", "hub_private_or_missing", "org/nowhere"),
        ({}, "hf_other", "org/nowhere", "hub_model_missing", "org/nowhere"),
        ({}, "hf_wrong", "org/x", "hub_token_refused", "does not accept HF_TOKEN of the runner"),
        ({}, "hf wrong", "org/x", "hub_token_unusable", "HF_TOKEN of the runner"),
        ({}, None, "org/x@v9", "hub_revision_missing", "no revision v9"),
    ],
)
def test_who_may_not_is_told_why(
    bench: HubBench,
    monkeypatch: pytest.MonkeyPatch,
    options: dict[str, bool],
    token: str | None,
    asked: str,
    code: str,
    words: str,
) -> None:
    bench.peer.add("org/x", bench.tiny, gated="gated" in options, private="private" in options)
    bench.peer.accounts.add("hf_other")
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    name, _, revision = asked.partition("@")
    error = refused(bench, name, revision or None)
    assert (error.code, token is None or token not in str(error)) == (code, True)
    assert words in error.message
    assert bench.peer.bytes_of("file") == 0


JSON = (("Content-Type", "application/json"),)


@pytest.mark.parametrize(
    ("where", "fault", "code", "words"),
    [
        ("/api/", Says(429, headers=(("Retry-After", "42"),)), "hub_rate_limited", "42 seconds"),
        ("/api/", Says(429), "hub_rate_limited", "without saying how long"),
        ("/api/", Says(429, headers=(("RateLimit", '"api";r=0;t=55'),)), "hub_rate_limited", "55 seconds"),
        ("shard|model-0", Says(429, headers=(("Retry-After", "7"),)), "hub_rate_limited", "7 seconds"),
        ("/api/", Says(500), "hub_failed", "status 500"),
        ("model-0", Says(503), "hub_failed", "status 503"),
        ("/api/", Says(403), "hub_forbidden", "without a token"),
        ("/api/", Says(418), "hub_refused", "status 418"),
        ("/api/", Says(200, b"<html>"), "hub_answer_broken", "not JSON"),
        ("/api/", Says(200, b"[]"), "hub_answer_broken", "not a description"),
        ("/api/", Says(200, b"{}"), "hub_answer_broken", "no commit"),
        ("/api/", Says(200, b'{"sha": "%s"}' % (b"a" * 40)), "hub_answer_broken", "list of files"),
        ("/api/", Says(204), "hub_answer_broken", "not JSON"),
        ("/api/", Says(302), "hub_answer_broken", "redirected more than"),
        ("/api/", Says(302, headers=(("Location", "ftp://x/y"),)), "hub_answer_broken", "leads to an address"),
        ("/api/", Raw(b"SSH-2.0-OpenSSH\r\n"), "hub_answer_broken", ""),
        ("/api/", Raw(b""), "hub_answer_broken", ""),
        ("/api/", BreaksOff(100), "hub_answer_broken", ""),
        ("config.json", BreaksOff(100), "hub_answer_broken", "config.json of org/tiny"),
        ("config.json", Says(200, b"{}"), "hub_answer_broken", "ended after 2 of"),
        ("resolve/.*/config.json", Says(200, b"x" * 586), "hub_answer_broken", "not the file that the commit names"),
        ("config.json", Says(200, b"x" * 10**6), "hub_answer_broken", "more than the"),
        ("config.json", Says(200, b"x", (("Content-Encoding", "gzip"),)), "hub_answer_broken", "compressed"),
        ("config.json", Says(404, headers=(("X-Error-Code", "EntryNotFound"),)), "hub_file_missing", "config.json"),
        ("model-0", IgnoresRange(), "hub_range_ignored", "instead of its header"),
        ("model-0.*signature", BreaksOff(4), "hub_answer_broken", ""),
        ("model-0.*signature", Says(206, b"x" * 8), "hub_answer_broken", "were asked for"),
        ("model-0.*signature", Says(206, b"x" * 8, (("Content-Range", "bytes 0-7/9"),)), "hub_answer_broken", "0-7/9"),
        ("model-0.*signature", Says(416), "hub_refused", "status 416"),
        ("model-0.*signature", Says(403), "hub_forbidden", ""),
    ],
)
def test_each_failure_is_one_sentence(bench: HubBench, where: str, fault: Fault, code: str, words: str) -> None:
    bench.peer.fail(where, fault)
    error = refused(bench)
    assert (error.code, words in error.message) == (code, True), error


def test_a_hub_that_hangs_or_drips(bench: HubBench) -> None:
    quick = bench.settings.models.model_copy(update={"hub_timeout_seconds": 0.2})
    bench.models = Models(bench.settings.model_copy(update={"models": quick}))
    faults: tuple[Fault, ...] = (Hangs(), Drips())
    for where, fault in itertools.product(("/api/", "config.json", "model-0"), faults):
        bench.peer.fail(where, fault)
        error = refused(bench)
        assert (error.code, "0.2 seconds" in error.message) == ("hub_timeout", True)
        bench.peer.heal()


def test_a_hub_that_is_not_there(bench: HubBench, monkeypatch: pytest.MonkeyPatch) -> None:
    asyncio.run(bench.models.find("org/tiny"))
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:9")
    error = refused(bench)
    assert error.code == "hub_unreachable"
    assert "127.0.0.1:9" in error.message
    assert bench.commit in error.hint
    assert asyncio.run(bench.models.find("org/tiny", bench.commit)).revision == bench.commit
    assert refused(bench, "org/other").code == "hub_unreachable"


@pytest.mark.parametrize("variable", ["HF_HUB_OFFLINE", "TRANSFORMERS_OFFLINE"])
def test_a_runner_that_is_kept_offline(bench: HubBench, monkeypatch: pytest.MonkeyPatch, variable: str) -> None:
    monkeypatch.setenv(variable, "1")
    error = refused(bench)
    assert (error.code, variable in error.message) == ("hub_offline", True)
    assert bench.peer.calls == []


@pytest.mark.parametrize(
    "address", ["huggingface.co", "ftp://huggingface.co", "http://user@huggingface.co", "http://["]
)
def test_an_endpoint_that_is_none(bench: HubBench, monkeypatch: pytest.MonkeyPatch, address: str) -> None:
    monkeypatch.setenv("HF_ENDPOINT", address)
    assert refused(bench).code == "hub_endpoint_wrong"


def test_an_attempt_that_fails_half_way_is_continued(bench: HubBench) -> None:
    bench.peer.fail("model-00003", Says(500))
    refused(bench)
    bench.peer.heal()
    bench.peer.forget()
    analysis = asyncio.run(bench.analysed())
    assert analysis.model.hidden_layers == 2
    again = {Path(call.path.partition("?")[0]).name for call in bench.peer.calls}
    assert "model-00003-of-00003.safetensors" in again
    assert "config.json" not in again


@pytest.mark.parametrize("name", ["config.json", ".headers/model-00002-of-00003.safetensors", ".snapshot.json"])
@pytest.mark.parametrize("how", ["changed", "cut", "gone"])
def test_what_is_damaged_is_fetched_again(bench: HubBench, name: str, how: str) -> None:
    first = asyncio.run(bench.analysed())
    path = bench.snapshot / name
    content = path.read_bytes()
    if how == "gone":
        path.unlink()
    else:
        path.write_bytes(content[:-9] if how == "cut" else content.replace(b"2", b"3"))
    bench.peer.forget()
    location = asyncio.run(bench.models.again(first.model))
    assert analyse(location, CATALOGUE, FACTS, bench.settings) == first
    assert bench.peer.calls
    if name != ".snapshot.json":
        assert path.read_bytes() == content


def test_only_the_models_used_last_are_kept(bench: HubBench) -> None:
    from runner.intake.snapshot import SnapshotCache

    asyncio.run(bench.models.find("org/tiny"))
    cache = SnapshotCache(bench.snapshot.parent, most=3)
    record = source_of(asyncio.run(bench.models.find("org/tiny"))).record  # type: ignore[attr-defined]
    for number in range(5):
        commit = f"{number}" * 40
        for name, held in (("old", 1_000_000_000 + number),):
            made = cache.finish(record.model_copy(update={"repository": f"org/{name}", "commit": commit}))
            os.utime(made.folder / ".snapshot.json", (held, held))
    names = sorted(path.name.partition("@")[0] for path in bench.snapshot.parent.iterdir())
    assert len(names) == 3
    assert "org--tiny" in names


def test_an_unwritable_state_folder_is_a_sentence(bench: HubBench) -> None:
    (bench.settings.state_dir / "cache").mkdir(parents=True)
    (bench.settings.state_dir / "cache" / "hub").write_text("a file")
    assert refused(bench).code == "state_not_writable"


@pytest.mark.parametrize(
    ("change", "code"),
    [
        (lambda folder: (folder / "config.json").unlink(), "config_missing"),
        (lambda folder: (folder / "config.json").write_text("[]"), "config_broken"),
        (lambda folder: (folder / "tokenizer.json").unlink(), "tokenizer_missing"),
        (lambda folder: [path.unlink() for path in folder.glob("model*")], "weights_missing"),
        (lambda folder: (folder / "model-00002-of-00003.safetensors").unlink(), "weights_shard_missing"),
        (lambda folder: (folder / "model-00002-of-00003.safetensors").write_bytes(b"x"), "weights_truncated"),
        (lambda folder: (folder / "model-00002-of-00003.safetensors").write_bytes(b""), "weights_truncated"),
        (
            lambda folder: (folder / "model-00002-of-00003.safetensors").write_bytes(struct.pack("<Q", 2**40) + b"{"),
            "weights_not_safetensors",
        ),
        (lambda folder: (folder / "model.safetensors.index.json").write_text("{}"), "weights_index_broken"),
    ],
)
def test_a_repository_that_is_no_model(bench: HubBench, change: object, code: str) -> None:
    change(bench.tiny)  # type: ignore[operator]
    bench.peer.add("org/tiny", bench.tiny)
    with pytest.raises(RunnerError) as caught:
        asyncio.run(bench.analysed())
    error = caught.value
    assert error.code == code
    assert "org/tiny" in error.message
    assert "folder" not in error.hint.replace("name its folder", "")
    assert bench.peer.bytes_of("weight") == 0


def test_headers_beyond_all_measure(bench: HubBench, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("runner.intake.fetching._MOST_HEADER_BYTES", 1000)
    assert refused(bench).code == "hub_headers_too_large"


def test_a_large_model_costs_its_headers_alone(bench: HubBench) -> None:
    shapes, config = mixtral_8x7b()
    big = write_checkpoint(bench.folder / "upstream" / "mixtral", shapes, config, shards=19)
    bench.peer.add("org/mixtral", big)
    analysis = asyncio.run(bench.analysed("org/mixtral"))
    assert analysis.size.weight_bytes > 90e9
    assert bench.peer.bytes_of("weight") == 0
    assert bench.peer.bytes_of("header") < 200_000
    assert len(bench.peer.calls) == 3 + 3 * 19
    bench.peer.fail("model-0", IgnoresRange())
    shutil.rmtree(bench.snapshot.parent)
    assert refused(bench, "org/mixtral").code == "hub_range_ignored"
    # What a server pushes before the connection is closed goes no further than the buffers in between.
    assert bench.peer.bytes_of("weight") < 100_000_000


def test_the_daemon_starts_without_the_libraries_that_ask_the_hub() -> None:
    program = "import sys, runner.service.daemon; print({'huggingface_hub', 'httpx'} & set(sys.modules))"
    result = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert result.stdout.strip() == "set()"
