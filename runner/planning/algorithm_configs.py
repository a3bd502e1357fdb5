"""Configurations of algorithms for families that the engine has none for, derived from families that it has one for.

Nothing is made up: a configuration is the engine's own one of another family, the donor, and it is taken only where
this model has every layer that it names, under the same names, and where nothing in the model contradicts what the
donor's configuration takes for granted. The engine itself checks none of that: a scale folded into a normalisation
whose output feeds other layers as well changes what the model computes, without an error.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, cast

from pydantic import JsonValue

from runner.planning import algorithm_fit
from runner.planning.host_view import HostView
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import AlgorithmConfig, QuantPlan
from schemas.catalog import Catalogue, Template
from schemas.digest import canonical

NEVER_WORKS = frozenset({"autoround"})
"""Algorithms that the standard flow cannot run with any configuration. Source: seen with amd-quark 0.13 (KeyError)."""

_STEM = re.compile(r"[a-z]+")


@dataclass(frozen=True)
class Offer:
    """A configuration that could be written: for which algorithm, from which family, and its content.

    `left` are patterns of layers that it does not name, which are then only rounded to the nearest value.
    """

    algorithm: str
    family: str
    content: dict[str, JsonValue]
    left: tuple[str, ...] = ()


def written(plan: QuantPlan, analysis: ModelAnalysis, catalogue: Catalogue, host: HostView) -> list[AlgorithmConfig]:
    """The configuration files that a run of the plan brings along: for each of its algorithms that the engine has none
    for in this family, where the plan wants them written and a donor exists."""
    if not plan.write_algorithm_config:
        return []
    found = (offer(name, analysis, catalogue, host) for name in dict.fromkeys(plan.algorithms))
    return [
        AlgorithmConfig(
            algorithm=made.algorithm,
            derived_from=made.family,
            content=made.content,
            sha256=hashlib.sha256(content_bytes(made.content)).hexdigest(),
        )
        for made in found
        if made is not None
    ]


def offer(algorithm: str, analysis: ModelAnalysis, catalogue: Catalogue, host: HostView) -> Offer | None:
    """What could be written for an algorithm; None where it is built in, never works, or no family can be followed."""
    own = _own_template(analysis, catalogue)
    if own is None or algorithm not in catalogue.algorithms or algorithm in own.algorithms or algorithm in NEVER_WORKS:
        return None
    others = host.algorithm_configs.get(own.model_type, {}).values()
    for family in _nearest_first(algorithm, own, analysis, catalogue, host):
        fitted = algorithm_fit.fitted(host.algorithm_configs[family][algorithm], analysis, others)
        if fitted is not None:
            return Offer(algorithm, family, _plain(fitted.content), fitted.left)
    return None


def donor(algorithm: str, analysis: ModelAnalysis, catalogue: Catalogue, host: HostView) -> str | None:
    """The family whose built-in configuration would be followed; None where there is none."""
    found = offer(algorithm, analysis, catalogue, host)
    return found.family if found else None


def file_bytes(config: AlgorithmConfig) -> bytes:
    """The exact bytes of the configuration's file; `config.sha256` is theirs."""
    return content_bytes(config.content)


def content_bytes(content: Mapping[str, JsonValue]) -> bytes:
    """The one form in which a configuration is written: JSON, indented, keys in order, numbers as in a digest.

    A plan passes through other programs, in which 10000.0 may become 10000: the canonical form makes them one.
    """
    exact = json.loads(canonical(dict(content)))
    return (json.dumps(exact, indent=2, sort_keys=True) + "\n").encode("utf-8")


def _plain(content: Mapping[str, Any]) -> dict[str, JsonValue]:
    """The content with the numbers that a reader of the file will see."""
    return cast(dict[str, JsonValue], json.loads(content_bytes(content)))


def _own_template(analysis: ModelAnalysis, catalogue: Catalogue) -> Template | None:
    return catalogue.templates.get(analysis.compatibility.template or analysis.model.model_type)


def _nearest_first(
    algorithm: str, own: Template, analysis: ModelAnalysis, catalogue: Catalogue, host: HostView
) -> list[str]:
    """Families with a configuration of the algorithm, the nearest first: dense ones for a dense model and mixtures for
    a mixture; of them relatives by name; then those that the engine has the most configurations for."""
    candidates = [
        name
        for name, configs in host.algorithm_configs.items()
        if algorithm in configs
        and name in catalogue.templates
        and name != own.model_type
        and is_mixture(catalogue.templates[name], configs) is analysis.model.is_moe
    ]

    def distance(name: str) -> tuple[int, int, int, str]:
        return (-_kinship(name, own.model_type), -len(host.algorithm_configs[name]), len(name), name)

    return sorted(candidates, key=distance)


def is_mixture(template: Template, configs: Mapping[str, Mapping[str, Any]]) -> bool:
    """Whether a family routes to experts: its template leaves routers alone, or a configuration names experts."""
    last_words = (pattern.rstrip("*").rpartition(".")[2].strip("*") for pattern in template.exclude_defaults)
    return any(word in ("gate", "router") for word in last_words) or "expert" in json.dumps(configs)


def _kinship(one: str, other: str) -> int:
    """How much two family names have in common: nothing, unless they begin with the same word."""
    first, second = _STEM.match(one), _STEM.match(other)
    if first is None or second is None or first[0] != second[0]:
        return 0
    return next((i for i, (a, b) in enumerate(zip(one, other, strict=False)) if a != b), min(len(one), len(other)))
