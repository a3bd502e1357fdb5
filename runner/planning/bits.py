"""How many bytes a quantized layer takes on disk, from its scheme's specification."""

from __future__ import annotations

import math
from dataclasses import dataclass

from runner.planning import schemes
from schemas.catalog import Scheme, TensorSpec

ELEMENT_BYTES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "I8": 1, "U8": 1, "I32": 4}
"""Bytes of one element by its safetensors dtype."""

_WORD = 4  # integers below 8 bits are packed into 32-bit words


@dataclass(frozen=True)
class Stored:
    """What stands in the file for one layer: bytes of all its tensors, and how many tensors beside the weight."""

    size_bytes: int
    extra_tensors: int


def stored_layer(scheme: Scheme, rows: int, columns: int, element_bytes: int, *, wide_scales: bool) -> Stored | None:
    """A linear layer with `rows` outputs and `columns` inputs whose original elements have `element_bytes`.

    `wide_scales` says that scales are written as F32 (the GPTQ family does). Biases are not counted. None for a scheme
    that says no number of bits. Source: exports of amd-quark 0.13, 28 schemes.
    """
    spec = schemes.stored(scheme)
    if spec is None:
        return Stored(rows * columns * element_bytes, 0)
    width = schemes.bits(spec)
    if width is None:
        return None
    scale_bytes = _scale_bytes(scheme, spec, element_bytes, wide_scales=wide_scales)
    scales = _scales(spec, rows, columns)
    size = _packed(spec, width, rows, columns) + scales * scale_bytes
    extra = 1
    for stage in scheme.weight:
        if stage is not spec:
            size, extra = size + _WORD, extra + 1  # the one scale of the other stage, F32
    if schemes.is_integer(spec):
        size, extra = size + _zero_points(spec, width, rows, columns), extra + 1
    for stage in scheme.input:
        if stage.is_dynamic is False:
            pair = 2 if schemes.is_integer(stage) else 1  # integers come with a zero point
            size, extra = size + pair * element_bytes, extra + pair
    return Stored(size, extra)


def bits_per_weight(scheme: Scheme, rows: int, columns: int) -> float | None:
    """Bits of one weight of a bf16 layer, its share of scales and zero points included."""
    found = stored_layer(scheme, rows, columns, 2, wide_scales=False)
    return found.size_bytes * 8 / (rows * columns) if found else None


def _packed(spec: TensorSpec, width: int, rows: int, columns: int) -> int:
    if schemes.is_integer(spec) and width < 8:
        return rows * math.ceil(columns * width / 32) * _WORD
    return rows * math.ceil(columns * width / 8)


def _groups(spec: TensorSpec, columns: int) -> int:
    return math.ceil(columns / spec.group_size) if spec.group_size and spec.qscheme == "per_group" else 1


def _scales(spec: TensorSpec, rows: int, columns: int) -> int:
    if spec.qscheme == "per_tensor":
        return 1
    # Formats without a qscheme (MX6, BFP16) count their shared exponents in their bits already.
    return rows * _groups(spec, columns) if spec.qscheme else 0


def _scale_bytes(scheme: Scheme, spec: TensorSpec, element_bytes: int, *, wide_scales: bool) -> int:
    later = scheme.weight[scheme.weight.index(spec) + 1 :]
    if later:
        return (schemes.bits(later[0]) or 8) // 8  # a later stage quantizes the scales themselves
    if spec.dtype.lower().startswith(("fp4", "fp6")):
        return 1  # a power of two (E8M0) or an E5M3 byte
    if spec.scale_type == "float32" or wide_scales:
        return 4
    return element_bytes


def _zero_points(spec: TensorSpec, width: int, rows: int, columns: int) -> int:
    """Zero points are stored even when the scheme is symmetric, packed along the rows."""
    if spec.qscheme == "per_tensor":
        return 1
    words = math.ceil(rows * width / 32) * _WORD if width < 8 else rows
    return words * _groups(spec, columns)
