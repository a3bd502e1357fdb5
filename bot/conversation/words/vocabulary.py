"""The names that sentences are read with."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping
from functools import cached_property

from schemas.api import Capabilities
from schemas.base import Document


class Vocabulary(Document):
    """Names as their owners spell them: schemes, algorithms and datasets of the engine, runners of the bot.

    `labels` are those of runners: several may have the same, and where a runner is called so, it is meant.
    """

    schemes: frozenset[str] = frozenset()
    algorithms: frozenset[str] = frozenset()
    kv_cache_schemes: frozenset[str] = frozenset()
    attention_schemes: frozenset[str] = frozenset()
    datasets: frozenset[str] = frozenset()
    runners: frozenset[str] = frozenset()
    labels: frozenset[str] = frozenset()

    @cached_property
    def scheme_of(self) -> dict[str, str]:
        """Schemes by how people may type them: lower case, underscores."""
        return _by_key(self.schemes)

    @cached_property
    def algorithm_of(self) -> dict[str, str]:
        """Algorithms by how people may type them."""
        return _by_key(self.algorithms)

    @cached_property
    def dataset_of(self) -> dict[str, str]:
        """Datasets by how people may type them."""
        return _by_key(self.datasets)

    @cached_property
    def runner_of(self) -> dict[str, str]:
        """Runners, and labels that none of them is called, by how people may type them."""
        names = {key_of(name) for name in self.runners}
        labels = {key_of(label): label for label in sorted(self.labels, reverse=True) if key_of(label) not in names}
        return labels | _by_key(self.runners)


def _by_key(names: frozenset[str]) -> dict[str, str]:
    """Names that differ only in how they are typed are not among them: each of those has to be typed exactly."""
    keys = Counter(key_of(name) for name in names)
    return {key_of(name): name for name in names if keys[key_of(name)] == 1}


def key_of(name: str) -> str:
    """A name as it is compared with what people type: they take "GPU-1" and "gpu_1" for one another."""
    return name.lower().replace("-", "_")


PUBLISHED = Vocabulary(
    schemes=frozenset(
        {
            *(f"{kind}_wo_{group}" for kind in ("int4", "uint4") for group in ("32", "64", "128", "per_channel")),
            *("int4_wa_64", "int8", "fp8", "ptpc_fp8"),
            *("mxfp4", "mxfp6_e3m2", "mxfp6_e2m3", "mxfp4_mxfp6_e2m3", "mxfp4_fp8"),
            *("amdfp4", "amdfp4_g32", "nvfp4", "mx6", "bfp16"),
        }
    ),
    algorithms=frozenset({"awq", "gptq", "gptaq", "qronos", "smoothquant", "autosmoothquant", "rotation"}),
    kv_cache_schemes=frozenset({"fp8"}),
    attention_schemes=frozenset({"fp8"}),
    datasets=frozenset({"pileval", "wikitext", "cnn_dailymail", "HuggingFaceH4/ultrachat_200k"}),
)
"""The published names, for when no runner could be asked. Source: AMD Quark's published quantization planning."""


_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_MOST_LABELS = 50


def sayable_labels(offer: Capabilities) -> tuple[str, ...]:
    """The labels that a runner tells, as far as a person can say them in a word."""
    return tuple(label for label in offer.labels if _LABEL.fullmatch(label))[:_MOST_LABELS]


def vocabulary_of(capabilities: Mapping[str, Capabilities]) -> Vocabulary:
    """What the runners (by name) offer together, and the published names: the runner says what is wrong with those
    that it lacks."""
    catalogues = [of.catalogue for of in capabilities.values()]
    return Vocabulary(
        schemes=PUBLISHED.schemes.union(*(catalogue.schemes for catalogue in catalogues)),
        algorithms=PUBLISHED.algorithms.union(*(catalogue.algorithms for catalogue in catalogues)),
        kv_cache_schemes=PUBLISHED.kv_cache_schemes.union(*(catalogue.kv_cache_schemes for catalogue in catalogues)),
        attention_schemes=PUBLISHED.attention_schemes.union(*(catalogue.attention_schemes for catalogue in catalogues)),
        datasets=PUBLISHED.datasets.union(*(of.datasets for of in capabilities.values())),
        runners=frozenset(capabilities),
        labels=frozenset(label for of in capabilities.values() for label in sayable_labels(of)),
    )
