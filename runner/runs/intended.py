"""What a plan wants of each layer, asked by the layer's name, and what a scheme looks like in a file."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cached_property

from runner.planning import schemes
from runner.planning.layers import in_order
from runner.runs import words
from schemas.artifacts.analysis import LinearGroup, ModelAnalysis
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.plan import QuantPlan
from schemas.catalog import Catalogue, Scheme, Template, TensorSpec

_WORD_BYTES = 4


@dataclass(frozen=True)
class Intended:
    """The approved plan, ready to be asked."""

    plan: QuantPlan
    analysis: ModelAnalysis
    catalogue: Catalogue

    @classmethod
    def by(cls, manifest: RunManifest, catalogue: Catalogue) -> Intended:
        """What the manifest's plan wants."""
        return cls(manifest.inputs.quant_plan, manifest.inputs.model_analysis, catalogue)

    @property
    def groups(self) -> list[LinearGroup]:
        """The linear layers of the model."""
        return self.analysis.quantization_targets.groups

    @cached_property
    def uncertain(self) -> bool:
        """Whether no group of the analysis is sure: other modalities, say, whose layers saving may rename."""
        found = self.analysis.quantization_targets
        marked = any(group.provisional for group in found.groups)
        return found.provisional and (bool(self.analysis.model.modalities) or not marked)

    def is_provisional(self, group: LinearGroup) -> bool:
        """Whether the engine may name, split or count the layers of a group otherwise."""
        return group.provisional or self.uncertain

    @cached_property
    def schemes_used(self) -> list[Scheme]:
        """The schemes that the plan names and the engine has."""
        names = dict.fromkeys([self.plan.global_scheme, *self.plan.layer_quant_config.values()])
        return [self.catalogue.schemes[name] for name in names if name in self.catalogue.schemes]

    @property
    def unknown_schemes(self) -> list[str]:
        """Schemes that the plan names and the catalogue lacks."""
        named = {self.plan.global_scheme, *self.plan.layer_quant_config.values()}
        return sorted(named - self.catalogue.schemes.keys())

    @property
    def template(self) -> Template | None:
        """What the engine knows of the model's family."""
        name = self.analysis.compatibility.template or self.plan.model.model_type
        return self.catalogue.templates.get(name)

    def groups_of(self, name: str) -> list[LinearGroup]:
        """The groups that the layer belongs to; several when layers of one pattern differ in shape."""
        return [group for group, matches in self._candidates.get(words.pattern(name), []) if matches.fullmatch(name)]

    def scheme_name(self, name: str) -> str | None:
        """The scheme that the plan wants for a layer; None when it is to be left alone.

        The engine lets an exclusion win, then takes the first override that matches, then the global scheme.
        """
        if any(fnmatchcase(name, pattern) for pattern in self.plan.exclude_layers):
            return None
        groups = self.groups_of(name)
        if groups and all(group.excluded_by_default for group in groups) and not self.plan.exclude_layers_changed:
            return None
        for pattern, scheme in self._overrides:
            if fnmatchcase(name, pattern):
                return scheme
        return self.plan.global_scheme

    def scheme(self, name: str) -> Scheme | None:
        """The same as the engine's specification."""
        return self.catalogue.schemes.get(self.scheme_name(name) or "")

    @cached_property
    def _overrides(self) -> list[tuple[str, str]]:
        return in_order(self.plan.layer_quant_config)

    @cached_property
    def _candidates(self) -> dict[str, list[tuple[LinearGroup, re.Pattern[str]]]]:
        """Groups by their pattern with every number as `*`: of layers there may be tens of thousands, of these not."""
        found: dict[str, list[tuple[LinearGroup, re.Pattern[str]]]] = {}
        for group in self.groups:
            matches = re.compile(r"\d+".join(map(re.escape, group.pattern.split("*"))))
            found.setdefault(words.pattern(group.pattern), []).append((group, matches))
        return found


def packed_dtype(spec: TensorSpec) -> str | None:
    """The safetensors dtype in which the engine writes such weights; None where this is not known.

    Integers below 8 bits are packed into 32-bit words, 4- and 6-bit floats into bytes.
    Source: exports of amd-quark 0.13.
    """
    width, dtype = schemes.bits(spec), spec.dtype.lower()
    if schemes.is_integer(spec):
        if width is not None and width < 8:
            return "I32"
        return {"int8": "I8", "uint8": "U8"}.get(dtype)
    if re.match(r"fp[46](_|$)", dtype):
        return "U8"
    return {"fp8_e4m3": "F8_E4M3", "fp8_e5m2": "F8_E5M2"}.get(dtype)


def packed_sizes(spec: TensorSpec, rows: int, columns: int) -> set[int]:
    """Bytes that the packed weight of `rows` outputs and `columns` inputs may have.

    Words are filled along the inputs or along the outputs, depending on the scheme; only odd sizes show the difference.
    """
    return set(_packed_sizes(spec, rows, columns))


def _packed_sizes(spec: TensorSpec, rows: int, columns: int) -> Iterator[int]:
    width = schemes.bits(spec)
    if width is None:
        return
    if schemes.is_integer(spec) and width < 8:
        yield rows * math.ceil(columns * width / 32) * _WORD_BYTES
        yield columns * math.ceil(rows * width / 32) * _WORD_BYTES
    else:
        yield rows * math.ceil(columns * width / 8)


def static_input(scheme: Scheme) -> bool:
    """Whether calibration fixes a scale for the layer's inputs, which is then stored."""
    return any(spec.is_dynamic is False for spec in scheme.input)
