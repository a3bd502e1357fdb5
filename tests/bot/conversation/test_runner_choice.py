"""Which runner a request goes to, and why: tables, and what holds for whatever there is."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from bot.conversation.request import Changes, Request
from bot.conversation.runner_choice import Choice, KnownRunner, choose, placed, placed_changes
from bot.conversation.runner_wants import likes, needs
from schemas.api import Capabilities
from tests.bot.conversation.words.test_vocabulary import RECORDED

SCHEMES = ("fp8", "mxfp4", "int4_wo_32", "nvfp4")


def offer(*schemes: str, **fields: Any) -> Capabilities:
    """What a runner with these schemes, else with all of the recorded engine, offers."""
    kept = {name: RECORDED.schemes[name] for name in schemes or RECORDED.schemes}
    told: dict[str, Any] = {
        "catalogue": RECORDED.model_copy(update={"schemes": kept}),
        "entry_points": {"own": "/own.py"},
        "model_roots": ["/models"],
        "output_roots": ["/out"],
        "datasets": [],
        "hub": True,
        "remote_code": False,
        "engine": "local",
    }
    return Capabilities(**(told | fields))


def runner(
    name: str, *labels: str, offers: Capabilities | None = None, busy: int | None = 0, **more: Any
) -> KnownRunner:
    """A runner that answered, and offers all that the recorded engine has."""
    return KnownRunner(name, labels, offers if offers is not None else offer(), busy, **more)


def request(runner: str = "", model: str = "Qwen/Qwen3-8B", output: str | None = None, **choices: Any) -> Request:
    return Request(model=model, runner=runner, output_dir=output, choices=choices)


UNKNOWN = KnownRunner("z")
TABLE: list[tuple[str, Request, list[KnownRunner], Choice | None]] = [
    ("one runner", request(), [runner("a")], Choice("a")),
    ("one runner that cannot", request(global_scheme="mxfp4"), [runner("a", offers=offer("fp8"))], Choice("a")),
    ("no runner", request(), [], None),
    ("by name", request("b", global_scheme="mxfp4"), [runner("a"), runner("b", offers=offer("fp8"))], Choice("b")),
    ("by name as typed", request("GPU-1"), [runner("a"), runner("gpu_1")], Choice("gpu_1")),
    ("by a name of two", request("GPU-1"), [runner("gpu-1"), runner("gpu_1")], None),
    ("by a name that is a label too", request("a"), [runner("b", "a"), runner("a")], Choice("a")),
    ("by no name", request("c"), [runner("a"), runner("b")], None),
    (
        "by a label of one",
        request("H100"),
        [runner("a"), runner("b", "h100", away=True)],
        Choice("b", "only b has the label H100"),
    ),
    (
        "by a label of two",
        request("mi300x"),
        [runner("a"), runner("b", "MI300X", busy=2), runner("c", "mi300x")],
        Choice("c", "mi300x is a label of 2 runners, and b has 2 runs that wait or compute, c none"),
    ),
    (
        "by a label of two, one of which can",
        request("mi300x", global_scheme="mxfp4"),
        [runner("b", "mi300x", offers=offer("fp8")), runner("c", "mi300x", busy=9), runner("d")],
        Choice("c", "mi300x is a label of 2 runners, and only c has mxfp4"),
    ),
    (
        "by scheme",
        request(global_scheme="mxfp4"),
        [runner("a", offers=offer("fp8")), runner("b")],
        Choice("b", "only b has mxfp4"),
    ),
    (
        "by the scheme of some layers",
        request(layer_quant_config={"*attn*": "mxfp4"}),
        [runner("a", offers=offer("fp8")), runner("b")],
        Choice("b", "only b has mxfp4"),
    ),
    (
        "by the model's folder",
        request(model="/data/llama"),
        [runner("a"), runner("b", offers=offer(model_roots=["/data"]))],
        Choice("b", "only b reads /data/llama"),
    ),
    (
        "a folder beside a root",
        request(model="/models-old/llama"),
        [runner("a"), runner("b", offers=offer(model_roots=["/models-old/"]))],
        Choice("b", "only b reads /models-old/llama"),
    ),
    (
        "a folder that leads out of a root",
        request(model="/models/../data/x"),
        [runner("a"), runner("b", offers=offer(model_roots=["/data"]))],
        Choice("b", "only b reads /models/../data/x"),
    ),
    (
        "by the Hub",
        request(),
        [runner("a", offers=offer(hub=False)), runner("b")],
        Choice("b", "only b may ask the Hub"),
    ),
    (
        "by the output folder",
        request(output="/big/x"),
        [runner("a"), runner("b", offers=offer(output_roots=["/big"]))],
        Choice("b", "only b writes to /big/x"),
    ),
    (
        "by remote code",
        request(trust_remote_code=True),
        [runner("a"), runner("b", offers=offer(remote_code=True))],
        Choice("b", "only b runs a model's own code"),
    ),
    (
        "by the entry point",
        request(entry_point="quark_cli"),
        [runner("a"), runner("b", offers=offer(entry_points={"quark_cli": "/bin/quark-cli"}))],
        Choice("b", "only b has quark_cli as an entry point"),
    ),
    (
        "several lack several things",
        request(model="/models/x", global_scheme="mxfp4"),
        [runner("a", offers=offer("fp8")), runner("b", offers=offer(model_roots=["/data"])), runner("c")],
        Choice("c", "a has no mxfp4 and b does not read /models/x"),
    ),
    (
        "none can",
        request(global_scheme="mxfp4"),
        [runner("a", offers=offer("fp8", hub=False)), runner("b", offers=offer("fp8"))],
        Choice("b", "no runner offers all that is asked for: b has no mxfp4, a may not ask the Hub"),
    ),
    (
        "away",
        request(),
        [runner("a", away=True), runner("b", busy=7)],
        Choice("b", "a does not answer"),
    ),
    (
        "the one that can is away",
        request(global_scheme="mxfp4"),
        [runner("a", offers=offer("fp8")), runner("b", away=True)],
        Choice("b", "only b has mxfp4"),
    ),
    (
        "all are away",
        request(),
        [runner("a", away=True), runner("b", away=True)],
        Choice("a", "b stands behind it in the settings"),
    ),
    (
        "nothing is known",
        request(),
        [KnownRunner("a"), KnownRunner("b")],
        Choice("a", "it is the first in the settings, and what the runners offer is not known yet"),
    ),
    ("one is known", request(), [UNKNOWN, runner("b", busy=5)], Choice("b", "what z offers is not known yet")),
    (
        "one is known, and cannot",
        request(global_scheme="mxfp4"),
        [runner("a", offers=offer("fp8")), UNKNOWN],
        Choice("z", "a has no mxfp4"),
    ),
    (
        "fp4 prefers gfx950",
        request(global_scheme="mxfp4"),
        [runner("a", offers=offer(gpu_archs=["gfx942"])), runner("b", offers=offer(gpu_archs=["gfx950"]), busy=3)],
        Choice("b", "a has no gfx950, which computes in these formats"),
    ),
    (
        "fp8 prefers what computes in it",
        request(global_scheme="ptpc_fp8"),
        [runner("a", offers=offer(gpu_archs=["sm_80"])), runner("b", offers=offer(gpu_archs=["sm_90"]), busy=3)],
        Choice("b", "a has no GPUs that compute in FP8"),
    ),
    (
        "hardware by its architecture",
        request(hardware="H200"),
        [runner("a", offers=offer(gpu_archs=["gfx942"])), runner("b", offers=offer(gpu_archs=["sm_90"]))],
        Choice("b", "a has no H200"),
    ),
    (
        "hardware by a label",
        request(hardware="MI300X"),
        [runner("a"), runner("b", "mi300x", busy=3)],
        Choice("b", "a has no MI300X"),
    ),
    (
        "several GPUs",
        request(multi_gpu="auto"),
        [runner("a", offers=offer(gpu_count=1)), runner("b", offers=offer(gpu_count=8), busy=1)],
        Choice("b", "a has one GPU only"),
    ),
    (
        "GPUs rather than none",
        request(),
        [runner("a", offers=offer(accelerator="cpu")), runner("b", offers=offer(accelerator="amd-rocm"), busy=1)],
        Choice("b", "a has no GPU"),
    ),
    (
        "for the CPU any",
        request(priority="cpu"),
        [runner("a", offers=offer(accelerator="cpu")), runner("b", offers=offer(accelerator="amd-rocm"), busy=1)],
        Choice("a", "b has 1 run that waits or computes, a none"),
    ),
    ("the order", request(), [runner("a"), runner("b")], Choice("a", "b stands behind it in the settings")),
    (
        "many",
        request(),
        [runner(name, busy=number) for number, name in enumerate("abcdef")],
        Choice(
            "a",
            "b has 1 run that waits or computes, a none, c has 2 runs that wait or compute, a none, "
            "d has 3 runs that wait or compute, a none and 2 more come behind it",
        ),
    ),
]


@pytest.mark.parametrize(("asked", "runners", "expected"), [row[1:] for row in TABLE], ids=[row[0] for row in TABLE])
def test_a_runner_is_chosen(asked: Request, runners: list[KnownRunner], expected: Choice | None) -> None:
    assert choose(asked, runners) == expected


def test_a_new_request_is_placed_with_its_reason() -> None:
    runners = [runner("a", offers=offer("fp8")), runner("b")]
    there = placed(request(global_scheme="mxfp4"), runners)
    assert (there.runner, there.runner_reason) == ("b", "only b has mxfp4")
    assert placed(request("nope"), runners) == request("nope")
    assert placed(request(), []) == request()


def test_a_change_that_names_no_runner_moves_nothing() -> None:
    on_a = placed(request(), [runner("a", offers=offer("fp8")), runner("b", busy=1)])
    changes = Changes(choices={"global_scheme": "mxfp4"})
    assert placed_changes(changes, on_a, [runner("a", offers=offer("fp8")), runner("b")]) == changes


def test_a_change_to_a_name_takes_the_reason_back() -> None:
    runners = [runner("a"), runner("b")]
    on_a = placed(request(), runners)
    assert on_a.runner_reason
    moved = on_a.changed(placed_changes(Changes(runner="B"), on_a, runners))
    assert (moved.runner, moved.runner_reason) == ("b", "")
    assert on_a.changed(placed_changes(Changes(runner="a"), on_a, runners)) == on_a


def test_a_label_of_the_runner_that_it_has_changes_nothing() -> None:
    runners = [runner("a", "mi300x"), runner("b", "mi300x", busy=4)]
    on_b = request("b")
    assert on_b.changed(placed_changes(Changes(runner="mi300x"), on_b, runners)) == on_b


def test_any_runner_is_chosen_anew() -> None:
    runners = [runner("a"), runner("b", busy=4)]
    moved = request("b").changed(placed_changes(Changes(runner=""), request("b"), runners))
    assert (moved.runner, moved.runner_reason) == ("a", "b has 4 runs that wait or compute, a none")


def test_what_comes_with_the_change_counts() -> None:
    runners = [runner("a", "big", offers=offer("fp8")), runner("b", "big", busy=4)]
    changes = Changes(runner="big", choices={"global_scheme": "mxfp4"})
    assert placed_changes(changes, request("a"), runners).runner == "b"


OFFERS = some.one_of(
    some.none(),
    some.builds(
        offer,
        some.sampled_from(SCHEMES),
        some.sampled_from(SCHEMES),
        hub=some.booleans(),
        remote_code=some.booleans(),
        model_roots=some.sampled_from([[], ["/"], ["/models"], ["/data", "/models/x"]]),
        accelerator=some.sampled_from(["cpu", "amd-rocm", "nvidia-cuda", "unknown"]),
        gpu_archs=some.lists(some.sampled_from(["gfx942", "gfx950", "sm_80", "sm_90", "sm_100", "?"]), max_size=2),
        gpu_count=some.integers(0, 8),
    ),
)
KNOWN = some.builds(
    KnownRunner,
    some.just("?"),
    some.lists(some.sampled_from(["mi300x", "H100", "fast"]), max_size=2).map(tuple),
    OFFERS,
    some.one_of(some.none(), some.integers(0, 9)),
    some.integers(0, 3),
    some.booleans(),
)
RUNNERS = some.lists(KNOWN, min_size=1, max_size=6).map(
    lambda found: [replace(one, name=f"r{number}") for number, one in enumerate(found)]
)
REQUESTS = some.builds(
    request,
    some.sampled_from(["", "", "", "r0", "r1", "mi300x", "h100", "nope"]),
    model=some.sampled_from(["Qwen/Qwen3-8B", "/models/x", "/models/x/../y", "/data", "tiny", "./tiny"]),
    output=some.sampled_from([None, "/out/x", "x", "/elsewhere"]),
    global_scheme=some.one_of(some.none(), some.sampled_from([*SCHEMES, "new_scheme"])),
    trust_remote_code=some.booleans(),
    hardware=some.sampled_from([None, "H100", "gfx950", "MI300X", "whatever"]),
    priority=some.sampled_from([None, "cpu", "speed"]),
)


def cannot(one: KnownRunner, asked: Request) -> bool:
    """Whether it is known that this runner would refuse."""
    return one.offer is not None and any(not want.met(one.offer) for want in needs(asked))


@given(REQUESTS, RUNNERS)
def test_it_is_always_one_of_those_that_are_meant(asked: Request, runners: list[KnownRunner]) -> None:
    choice = choose(asked, runners)
    names = [one.name for one in runners]
    meant = [one.name for one in runners if not asked.runner or asked.runner in names or one.has(asked.runner)]
    if choice is None:
        assert asked.runner
        assert asked.runner not in names
        assert not meant
        return
    assert choice.runner == asked.runner if asked.runner in names else choice.runner in meant
    assert choice.reason.isprintable()
    assert len(choice.reason) <= 300
    assert bool(choice.reason) == (asked.runner not in names and len(runners) > 1)


@given(REQUESTS, RUNNERS)
def test_one_that_cannot_is_never_chosen_over_one_that_can(asked: Request, runners: list[KnownRunner]) -> None:
    choice = choose(asked, runners)
    by_name = {one.name: one for one in runners}
    if choice is None or asked.runner in by_name:
        return
    among = [one for one in runners if not asked.runner or one.has(asked.runner)]
    chosen = by_name[choice.runner]
    if any(not cannot(one, asked) for one in among):
        assert not cannot(chosen, asked)
    if chosen.away:
        assert all(one.away or cannot(one, asked) for one in among if not cannot(chosen, asked))


@given(REQUESTS, RUNNERS, some.randoms())
def test_only_ties_are_decided_by_the_order(asked: Request, runners: list[KnownRunner], random: Any) -> None:
    first = choose(asked, runners)
    shuffled = list(runners)
    random.shuffle(shuffled)
    second = choose(asked, shuffled)
    if first is None or second is None:
        assert first is second
    elif first.runner != second.runner:
        one, other = (next(r for r in runners if r.name == choice.runner) for choice in (first, second))
        assert (one.away, one.offer is None, one.busy_with) == (
            other.away,
            other.offer is None,
            other.busy_with,
        )


@given(REQUESTS, RUNNERS)
def test_what_is_rather_wanted_is_the_same_for_all(asked: Request, runners: list[KnownRunner]) -> None:
    assert len({tuple(want.having for want in likes(asked, one.labels)) for one in runners}) == 1


@given(REQUESTS, RUNNERS)
def test_choosing_again_for_the_same_runner_changes_nothing(asked: Request, runners: list[KnownRunner]) -> None:
    there = placed(asked, runners)
    names = {one.name for one in runners}
    if there.runner in names:
        again = placed_changes(Changes(runner=there.runner), there, runners)
        assert there.changed(again) == there
