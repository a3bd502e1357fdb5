"""What a scheme's own specification implies: whether it can be exported, what it does to odd sizes, where it computes.

Everything is read from the specification of the installed engine, nothing from a scheme's name, so that schemes which a
later engine adds are judged alike.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterable

from schemas.catalog import Catalogue, Scheme, TensorSpec

_UNEXPORTABLE = re.compile(r"(mx|bfp)\d+")
_BITS = re.compile(r"(?:u?int|fp|mx|bfp)(\d+)")
_NOMINAL_BITS = {"bfp16": 9, "float16": 16, "bfloat16": 16, "float32": 32, "fp16": 16, "bf16": 16, "fp32": 32}


def bits(spec: TensorSpec) -> int | None:
    """Bits of one element; None for a dtype that says no number. bfp16 shares exponents and takes 9."""
    dtype = spec.dtype.lower()
    if dtype in _NOMINAL_BITS:
        return _NOMINAL_BITS[dtype]
    found = _BITS.match(dtype)
    return int(found[1]) if found else None


def is_integer(spec: TensorSpec) -> bool:
    """Whether the elements are integers (int4, uint4, int8, ...)."""
    return spec.dtype.lower().startswith(("int", "uint"))


def stored(scheme: Scheme) -> TensorSpec | None:
    """The stage whose elements are stored: the narrowest one. The others quantize its scales or prepare it."""
    return min(scheme.weight, key=lambda spec: bits(spec) or 64, default=None)


def cannot_be_exported(scheme: Scheme) -> bool:
    """Whether the engine quantizes with it but cannot write the result.

    MX6, MX9 and BFP16 blocks have no packed form. Source: seen with amd-quark 0.13 at the export of all three.
    """
    specs = (*scheme.weight, *scheme.input, *scheme.output)
    return any(_UNEXPORTABLE.fullmatch(spec.dtype.lower()) for spec in specs)


def refused_width(scheme: Scheme, in_features: int) -> int | None:
    """The integer group size that does not divide `in_features`, at which the engine stops; None when all divide."""
    return _misfit(scheme, in_features, integer=True)


def padded_width(scheme: Scheme, in_features: int) -> int | None:
    """The group size of a float format that does not divide `in_features`; the engine then pads without a word."""
    return _misfit(scheme, in_features, integer=False)


def _misfit(scheme: Scheme, in_features: int, *, integer: bool) -> int | None:
    groups = (
        spec.group_size
        for spec in (*scheme.weight, *scheme.input)
        if spec.group_size and spec.qscheme == "per_group" and is_integer(spec) is integer
    )
    return next((group for group in groups if in_features % group), None)


def forward_needs_gpu(scheme: Scheme) -> bool:
    """Whether every forward pass needs a GPU kernel: activations in FP4 with power-of-two scales (MXFP4).

    The FP4 formats with other scales (amdfp4, nvfp4) and MXFP6 have code for the CPU.
    Source: seen with amd-quark 0.13 ("only implemented in CUDA devices").
    """
    return any(
        spec.dtype.lower() == "fp4" and spec.qscheme == "per_group" and spec.scale_type in (None, "float")
        for spec in scheme.input
    )


def forward_fails(scheme: Scheme) -> bool:
    """Whether what the engine wrote cannot be computed with by the same engine: scales stored as FP8 E5M3.

    Source: seen with amd-quark 0.13 for amdfp4_global16, in memory and loaded again ("expected uint8").
    """
    return any(spec.dtype.lower() == "fp8_e5m3" for spec in scheme.weight[1:])


def is_fp4(scheme: Scheme) -> bool:
    """Whether weights are stored as 4-bit floats."""
    spec = stored(scheme)
    return spec is not None and spec.dtype.lower() == "fp4"


def is_fp8(scheme: Scheme) -> bool:
    """Whether weights and activations are 8-bit floats (fp8, ptpc_fp8)."""
    specs = (*scheme.weight, *scheme.input)
    return bool(scheme.weight and scheme.input) and all(spec.dtype.lower().startswith("fp8") for spec in specs)


def is_static_int8(scheme: Scheme) -> bool:
    """Whether weights and activations are INT8 with one scale for a whole tensor, fixed by calibration."""
    specs = (*scheme.weight, *scheme.input)
    return bool(scheme.weight and scheme.input) and all(
        spec.dtype.lower() == "int8" and spec.qscheme == "per_tensor" and not spec.is_dynamic for spec in specs
    )


def is_low_integer(scheme: Scheme) -> bool:
    """Whether weights are stored as integers of 4 bits or fewer."""
    spec = stored(scheme)
    return spec is not None and is_integer(spec) and (bits(spec) or 64) <= 4


def fits(scheme: Scheme, widths: Iterable[int]) -> bool:
    """Whether no integer group size refuses any of the layers' in_features."""
    return all(refused_width(scheme, width) is None for width in widths)


def nearest_fitting(scheme: Scheme, widths: Iterable[int], catalogue: Catalogue) -> str | None:
    """The scheme of the same kind whose groups fit: the largest group not above the own one, else per channel.

    The same kind has the same stored dtype and the same dtype of activations, or none. None when nothing fits.
    """
    widths = list(widths)
    kind = _kind(scheme)
    same = [other for other in catalogue.schemes.values() if _kind(other) == kind and fits(other, widths)]
    if any(other.name == scheme.name for other in same):
        return scheme.name
    own = scheme.group_size or 0
    grouped = [other for other in same if other.group_size and other.group_size <= own]
    if grouped:
        return max(grouped, key=lambda other: other.group_size or 0).name
    return next((other.name for other in same if not other.group_size), None)


def _kind(scheme: Scheme) -> tuple[str | None, tuple[str, ...]]:
    spec = stored(scheme)
    return (spec.dtype if spec else None, tuple(item.dtype for item in scheme.input))


def similar_names(name: str, names: Iterable[str]) -> str:
    """Up to three names that look like a mistyped one, as a hint; empty when none does."""
    close = difflib.get_close_matches(name.lower(), list(names), n=3, cutoff=0.45)
    return f"Did you mean {' or '.join(close)}?" if close else ""
