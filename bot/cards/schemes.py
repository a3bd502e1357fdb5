"""Quantization schemes as people choose among them: by family, each with what it does in a few words.

All of it is read from the installed engine's own specification, so that schemes of a later engine are sorted alike.
"""

from __future__ import annotations

import re

from bot.cards.texts import line
from schemas.catalog import Catalogue, Scheme, TensorSpec

FAMILIES = ("FP8", "INT8", "INT4", "MX/FP4", "other")
"""The families in the order in which they are offered."""

_BITS = re.compile(r"(?:u?int|fp|mx)(\d+)")
_WIDEST = 64


def family(scheme: Scheme) -> str:
    """The family of what is stored: of several stages of one weight the narrowest is."""
    stored = _stored(scheme)
    dtype = stored.dtype.lower() if stored else ""
    if dtype.startswith("fp8"):
        return "FP8"
    if dtype in {"int8", "uint8"}:
        return "INT8"
    if dtype in {"int4", "uint4"}:
        return "INT4"
    return "MX/FP4" if dtype.startswith(("fp4", "fp6", "mx")) else "other"


def label(scheme: Scheme) -> str:
    """Its name and what it does: "int4_wo_32: int4 weights, groups of 32"."""
    stored = _stored(scheme)
    if stored is None:
        return line(scheme.name, 75)
    groups = f", groups of {stored.group_size}" if stored.group_size else ""
    activations = f", {scheme.input[0].dtype} activations" if scheme.input else ""
    return line(f"{scheme.name}: {stored.dtype} weights{groups}{activations}", 75)


def by_family(catalogue: Catalogue) -> list[tuple[str, Scheme]]:
    """All schemes with their family, families in their order and schemes by name."""
    found = ((family(scheme), scheme) for scheme in catalogue.schemes.values())
    return sorted(found, key=lambda one: (FAMILIES.index(one[0]), _by_number(one[1].name)))


def _stored(scheme: Scheme) -> TensorSpec | None:
    return min(scheme.weight, key=_bits, default=None)


def _bits(spec: TensorSpec) -> int:
    found = _BITS.match(spec.dtype.lower())
    return int(found[1]) if found else _WIDEST


def _by_number(name: str) -> list[tuple[int, str]]:
    """Sorts int4_wo_32 before int4_wo_128."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d{1,9})", name)]
