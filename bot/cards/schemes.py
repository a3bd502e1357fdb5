"""Quantization schemes and algorithms as people choose among them: schemes by family, each with what it does.

The runner describes those that are known. What a later engine adds is told from its own specification, and said to be
described by nobody.
"""

from __future__ import annotations

import re

from bot.cards.texts import line
from schemas.catalog import Catalogue, Scheme, TensorSpec

FAMILIES = ("FP8", "INT8", "INT4", "MX/FP4", "other")
"""The families of what the runner does not sort, in the order in which they are offered."""

_FIRST = ("FP8", "INT8", "INT4", "UINT4", "OCP", "MX")

NOT_DESCRIBED = "not described"
_LABEL, _ABOUT = 75, 200  # characters

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
    does = scheme.description or _specified(scheme)
    return line(f"{scheme.name}: {does}" if does else scheme.name, _LABEL)


def about(scheme: Scheme) -> str:
    """What it does and what it is good for, in whole sentences."""
    if not scheme.description:
        told = _specified(scheme)
        return line(f"{told} ({NOT_DESCRIBED})" if told else NOT_DESCRIBED, _ABOUT)
    return line(f"{scheme.description}. {scheme.use_case}".strip(), _ABOUT)


def algorithm_label(name: str, catalogue: Catalogue | None) -> str:
    """An algorithm's name and what it does."""
    found = catalogue.described_algorithms.get(name) if catalogue else None
    return line(f"{name}: {found.description}" if found and found.description else name, _LABEL)


def about_algorithm(name: str, catalogue: Catalogue | None) -> str:
    """What an algorithm does and which schemes it suits."""
    found = catalogue.described_algorithms.get(name) if catalogue else None
    if found is None or not found.description:
        return NOT_DESCRIBED
    return line(f"{found.description}. For: {found.suits}" if found.suits else found.description, _ABOUT)


def by_family(catalogue: Catalogue) -> list[tuple[str, Scheme]]:
    """All schemes with their family, the common families first; in each of them the schemes by name."""
    found = ((line(scheme.family) or family(scheme), scheme) for scheme in catalogue.schemes.values())
    return sorted(found, key=lambda one: (*_place(one[0]), _by_number(one[1].name)))


def _place(group: str) -> tuple[int, str]:
    """Where a family stands: by the word that it begins with, else by the alphabet, and what has no name last."""
    if group.lower() == "other":
        return len(_FIRST) + 1, ""
    return next((place for place, word in enumerate(_FIRST) if group.startswith(word)), len(_FIRST)), group


def _specified(scheme: Scheme) -> str:
    """What the engine's own specification says of it."""
    stored = _stored(scheme)
    if stored is None:
        return ""
    groups = f", groups of {stored.group_size}" if stored.group_size else ""
    activations = f", {scheme.input[0].dtype} activations" if scheme.input else ""
    return f"{stored.dtype} weights{groups}{activations}"


def _stored(scheme: Scheme) -> TensorSpec | None:
    return min(scheme.weight, key=_bits, default=None)


def _bits(spec: TensorSpec) -> int:
    found = _BITS.match(spec.dtype.lower())
    return int(found[1]) if found else _WIDEST


def _by_number(name: str) -> list[tuple[int, str]]:
    """Sorts int4_wo_32 before int4_wo_128."""
    return [(int(part), "") if part.isdecimal() else (0, part) for part in re.split(r"(\d{1,9})", name)]
