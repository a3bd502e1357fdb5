"""The names that sentences are read with."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bot.conversation.words import PUBLISHED, Vocabulary, understand, vocabulary_of
from schemas.api import Capabilities
from schemas.catalog import Catalogue
from tests.bot.conversation.words.sentences import PLAN

RECORDED = Catalogue.model_validate(
    json.loads((Path(__file__).parents[3] / "data" / "catalogue-0.13.json").read_text(encoding="utf-8"))
)


def capabilities(catalogue: Catalogue = RECORDED, datasets: tuple[str, ...] = ()) -> Capabilities:
    """What a runner with the recorded engine offers."""
    return Capabilities(
        catalogue=catalogue,
        entry_points={},
        model_roots=[],
        output_roots=[],
        datasets=list(datasets),
        hub=False,
        remote_code=False,
        engine="local",
    )


def test_the_published_names_are_names_of_the_engine() -> None:
    assert PUBLISHED.schemes <= RECORDED.schemes.keys()
    assert PUBLISHED.algorithms <= set(RECORDED.algorithms)
    assert len(PUBLISHED.algorithms) == 7


def test_what_runners_offer_is_added_to_what_is_published() -> None:
    small = RECORDED.model_copy(update={"schemes": {"fp8": RECORDED.schemes["fp8"]}, "algorithms": ["autoround"]})
    found = vocabulary_of({"a": capabilities(small, ("own.txt",)), "b": capabilities(datasets=("books/b.jsonl",))})
    assert found.runners == {"a", "b"}
    assert found.schemes == RECORDED.schemes.keys() | PUBLISHED.schemes
    assert found.algorithms == set(RECORDED.algorithms)
    assert {"own.txt", "books/b.jsonl", "pileval"} <= found.datasets


def test_without_runners_the_published_names_count() -> None:
    assert vocabulary_of({}) == PUBLISHED


@pytest.mark.parametrize("name", sorted(RECORDED.schemes))
def test_every_scheme_of_the_engine_can_be_asked_for(name: str) -> None:
    offered = vocabulary_of({"a": capabilities()})
    for vocabulary in (PUBLISHED, offered):
        for sentence in (f"use {name}", f"scheme {name.upper()}", f"switch to {name.replace('_', '-')}"):
            assert understand(sentence, PLAN, vocabulary).flat == {"global_scheme": name}, sentence
    assert understand(name, PLAN, offered).flat == {"global_scheme": name}


@pytest.mark.parametrize("name", sorted(RECORDED.algorithms))
def test_every_algorithm_of_the_engine_can_be_asked_for(name: str) -> None:
    offered = vocabulary_of({"a": capabilities()})
    assert understand(f"use {name.upper()}", PLAN, offered).flat == {"algorithm": name}


@pytest.mark.parametrize("name", sorted(RECORDED.schemes))
def test_every_scheme_can_be_that_of_some_layers_and_of_the_rest(name: str) -> None:
    offered = vocabulary_of({"a": capabilities()})
    for spelled in (name, name.upper(), name.replace("_", "-")):
        for sentence, expected in {
            f"attention in {spelled}": {"layer_quant_config": {"*self_attn*": name}},
            f"attention in {spelled}, the rest int8": {
                "layer_quant_config": {"*self_attn*": name},
                "global_scheme": "int8",
            },
            f"keep lm_head at {spelled}": {"layer_quant_config": {"lm_head": name}},
            f"everything else in {spelled}": {"global_scheme": name},
        }.items():
            assert understand(sentence, PLAN, offered).flat == expected, sentence


@pytest.mark.parametrize("name", sorted(RECORDED.algorithms))
def test_every_algorithm_can_be_named_in_several_ways(name: str) -> None:
    offered = vocabulary_of({"a": capabilities()})
    for sentence in (
        f"with {name}",
        f"algorithm: {name.title()}",
        f"--quant_algo {name}",
        f"{name}, please",
        f"'{name}'",
    ):
        expected = {} if sentence.startswith("'") else {"algorithm": name}
        assert understand(sentence, PLAN, offered).flat == expected, sentence
    for sentence in (f"no {name}", f"not {name}", f"drop {name}", f"don't use {name}"):
        understood = understand(sentence, PLAN, offered)
        assert (understood.flat, understood.changes.without_algorithms) == ({"algorithm": None}, (name,)), sentence


@pytest.mark.parametrize("name", sorted(PUBLISHED.datasets))
def test_every_dataset_can_be_that_of_calibration_and_of_evaluation(name: str) -> None:
    for spelled in (name, name.upper(), name.replace("_", "-")):
        assert understand(f"calibrate on {spelled}", PLAN).flat == {"calibration": {"dataset": name}}
        assert understand(f"dataset: {spelled}", PLAN).flat == {"calibration": {"dataset": name}}
        assert understand(f"evaluate on {spelled}", PLAN).flat == {"evaluation_dataset": name}


def test_names_that_differ_only_in_spelling_are_typed_exactly() -> None:
    names = Vocabulary(runners=frozenset({"gpu-1", "gpu_1", "Box"}))
    assert understand("on gpu-1", PLAN, names).flat == {"runner": "gpu-1"}
    assert understand("on gpu_1", PLAN, names).flat == {"runner": "gpu_1"}
    assert understand("on GPU-1", PLAN, names).flat == {}
    assert understand("on box", PLAN, names).flat == {"runner": "Box"}


def test_labels_that_can_be_said_are_told_by_runners() -> None:
    told = ["mi300x", "H100", "two words", "", "-x", "a" * 65, "\u202e", *(f"l{number}" for number in range(99))]
    found = vocabulary_of({"a": capabilities().model_copy(update={"labels": told}), "b": capabilities()}).labels
    assert {"mi300x", "H100"} <= found
    assert all(label.isascii() and " " not in label and 0 < len(label) <= 64 for label in found)
    assert len(found) == 50
