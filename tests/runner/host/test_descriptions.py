"""Words for what the engine offers: for all that was published, and for nothing that nobody has described."""

from __future__ import annotations

import json
from typing import Any

import pytest

from runner.host import descriptions
from runner.host.interpreter_facts import read_algorithm_configs, read_catalogue
from runner.planning import schemes
from tests.runner.planning.catalogue import RECORDED, recorded

PUBLISHED_SCHEMES = {
    *("int4_wo_32", "int4_wo_64", "int4_wo_128", "int4_wo_per_channel"),
    *("uint4_wo_32", "uint4_wo_64", "uint4_wo_128", "uint4_wo_per_channel"),
    *("int8", "fp8", "ptpc_fp8"),
    *("mxfp4", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4_mxfp6_e2m3", "mxfp4_fp8"),
    *("amdfp4", "amdfp4_g32", "nvfp4", "mx6", "bfp16", "int4_wa_64"),
}
PUBLISHED_ALGORITHMS = {"awq", "gptq", "smoothquant", "autosmoothquant", "rotation", "gptaq", "qronos"}


def probed() -> dict[str, Any]:
    """What the probe of an installation said."""
    read: dict[str, Any] = json.loads(RECORDED.with_name("catalogue-probe-0.13.json").read_text(encoding="utf-8"))
    return read


def test_the_recorded_catalogue_is_what_the_recorded_probe_reads_as() -> None:
    assert read_catalogue(probed(), recorded().versions) == recorded()


def test_everything_that_the_engine_has_is_offered() -> None:
    catalogue = recorded()
    assert (len(catalogue.schemes), len(catalogue.algorithms), len(catalogue.templates)) == (28, 9, 51)
    assert catalogue.kv_cache_schemes == ["fp8"]
    assert catalogue.schemes.keys() >= PUBLISHED_SCHEMES
    assert set(catalogue.algorithms) >= PUBLISHED_ALGORITHMS
    assert read_algorithm_configs(probed()).keys() == catalogue.templates.keys()


def test_every_scheme_and_algorithm_of_the_recorded_version_is_described() -> None:
    for scheme in recorded().schemes.values():
        assert all((scheme.family, scheme.description, scheme.use_case)), scheme.name
        assert max(len(scheme.family), len(scheme.description), len(scheme.use_case)) <= 90, scheme.name
    assert recorded().described_algorithms.keys() == set(recorded().algorithms)
    for algorithm in recorded().described_algorithms.values():
        assert all((algorithm.description, algorithm.suits)), algorithm.name


def test_a_name_that_nobody_has_described_is_offered_without_words() -> None:
    document = probed()
    document["schemes"]["fp3"] = document["schemes"]["fp8"]
    document["algorithms"].append("magic")
    catalogue = read_catalogue(document, recorded().versions)
    unknown = catalogue.schemes["fp3"]
    assert (unknown.family, unknown.description, unknown.use_case) == ("", "", "")
    assert unknown.weight == catalogue.schemes["fp8"].weight
    assert "magic" in catalogue.algorithms
    assert "magic" not in catalogue.described_algorithms


@pytest.mark.parametrize("name", sorted(recorded().schemes))
def test_the_words_say_what_the_rules_know(name: str) -> None:
    """A use case must not praise what cannot be exported or computed."""
    scheme = recorded().schemes[name]
    assert ("fails when it exports" in scheme.use_case) is schemes.cannot_be_exported(scheme)
    assert ("fails to compute" in scheme.use_case) is schemes.forward_fails(scheme)
    assert ("perplexity can collapse" in scheme.use_case) is schemes.is_static_int8(scheme)


def test_what_has_no_words_has_empty_ones() -> None:
    assert descriptions.of_scheme("fp3") == descriptions.SchemeWords()
    assert descriptions.of_algorithm("magic") is None
