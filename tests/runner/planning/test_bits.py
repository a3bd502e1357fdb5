"""Bytes of quantized layers against what exports of amd-quark 0.13 took."""

from __future__ import annotations

import pytest

from runner.planning.bits import bits_per_weight, stored_layer
from schemas.catalog import Scheme, TensorSpec
from tests.runner.planning.catalogue import recorded

ROWS, COLUMNS = 4096, 4096
PER_CHANNEL = 20 / COLUMNS

BITS = {
    "int4_wo_32": 4.625,
    "int4_wo_64": 4.3125,
    "int4_wo_128": 4.15625,
    "uint4_wo_32": 4.625,
    "uint4_wo_128": 4.15625,
    "int4_wa_64": 4.3125,
    "int4_wo_per_channel": 4 + PER_CHANNEL,
    "uint4_wo_per_channel": 4 + PER_CHANNEL,
    "int8": 8,
    "fp8": 8,
    "ptpc_fp8": 8 + 16 / COLUMNS,
    "mxfp4": 4.25,
    "mxfp4_weight_only": 4.25,
    "mxfp4_fp8": 4.25,
    "mxfp4_mxfp6_e2m3": 4.25,
    "amdfp4_g32": 4.25,
    "amdfp4_global32": 4.25,
    "mxfp6_e3m2": 6.25,
    "mxfp6_e2m3": 6.25,
    "amdfp4": 4.5,
    "amdfp4_global16": 4.5,
    "nvfp4": 4.5,
    "fp4_block16_scale_e4m3": 4.5,
    "int4_fp8": 4 + 36 / COLUMNS,
    "mx6": 6,
    "mx9": 9,
    "bfp16": 9,
}


@pytest.mark.parametrize("name", sorted(recorded().schemes))
def test_bits_of_a_weight(name: str) -> None:
    expected = BITS.get(name, BITS.get(name.removeprefix("u")))
    assert expected is not None, f"no export of {name} was measured"
    assert bits_per_weight(recorded().schemes[name], ROWS, COLUMNS) == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize(("name", "expected"), [("int4_wo_128", 4.28125), ("uint4_wo_32", 5.125)])
def test_the_gptq_family_writes_wide_scales(name: str, expected: float) -> None:
    found = stored_layer(recorded().schemes[name], ROWS, COLUMNS, 2, wide_scales=True)
    assert found is not None
    assert found.size_bytes * 8 / (ROWS * COLUMNS) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("name", "packed"), [("int4_wo_per_channel", 13 * 4), ("mxfp4", 50 + 4), ("mxfp6_e2m3", 75 + 4), ("amdfp4", 50 + 7)]
)
def test_odd_widths_are_rounded_up_as_they_are_packed(name: str, packed: int) -> None:
    """A row of 100 inputs, as exported: int32 words, bytes of 4-bit and 6-bit floats, and scales of whole groups."""
    found = stored_layer(recorded().schemes[name], 128, 100, 2, wide_scales=False)
    assert found is not None
    per_row = 2 + 0.5 if name.startswith("int4") else 0  # a BF16 scale and a 4-bit zero point
    assert found.size_bytes == 128 * (packed + per_row)


@pytest.mark.parametrize(
    ("name", "tensors"), [("fp8", 2), ("ptpc_fp8", 1), ("int8", 4), ("int4_wo_32", 2), ("nvfp4", 3), ("int4_fp8", 3)]
)
def test_tensors_beside_the_weight(name: str, tensors: int) -> None:
    found = stored_layer(recorded().schemes[name], 128, 128, 2, wide_scales=False)
    assert found is not None
    assert found.extra_tensors == tensors


def test_a_dtype_without_a_number_has_no_size() -> None:
    assert stored_layer(Scheme(name="odd", weight=[TensorSpec(dtype="posit")]), 8, 8, 2, wide_scales=False) is None


def test_activations_alone_leave_the_weight_as_it_is() -> None:
    found = stored_layer(Scheme(name="inputs_only", input=[TensorSpec(dtype="int8")]), 8, 8, 2, wide_scales=False)
    assert found is not None
    assert found.size_bytes == 8 * 8 * 2
