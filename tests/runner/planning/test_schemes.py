"""What a scheme's specification implies, for every scheme of the recorded engine and for unknown ones alike."""

from __future__ import annotations

import pytest

from runner.planning import schemes
from schemas.catalog import Scheme, TensorSpec
from tests.runner.planning.catalogue import recorded, without_schemes

ALL = sorted(recorded().schemes)
UNEXPORTABLE = {"mx6", "mx9", "bfp16"}


@pytest.mark.parametrize("name", ALL)
def test_what_cannot_be_exported(name: str) -> None:
    assert schemes.cannot_be_exported(recorded().schemes[name]) is (name in UNEXPORTABLE)


@pytest.mark.parametrize(("dtype", "refused"), [("mx6", True), ("bfp12", True), ("fp4", False), ("int4", False)])
def test_an_unknown_scheme_is_judged_by_its_dtype(dtype: str, refused: bool) -> None:
    assert schemes.cannot_be_exported(Scheme(name="new_one", weight=[TensorSpec(dtype=dtype)])) is refused


def test_an_unexportable_input_is_enough() -> None:
    scheme = Scheme(name="mixed", weight=[TensorSpec(dtype="fp4")], input=[TensorSpec(dtype="mx9")])
    assert schemes.cannot_be_exported(scheme)


@pytest.mark.parametrize("name", ALL)
def test_only_mxfp4_activations_need_a_gpu(name: str) -> None:
    assert schemes.forward_needs_gpu(recorded().schemes[name]) is (name == "mxfp4")


@pytest.mark.parametrize(
    ("name", "width", "refused", "padded"),
    [
        ("int4_wo_32", 96, None, None),
        ("int4_wo_64", 96, 64, None),
        ("int4_wo_128", 576, 128, None),
        ("int4_wa_64", 100, 64, None),
        ("int4_wo_per_channel", 100, None, None),
        ("mxfp4", 100, None, 32),
        ("mxfp4", 96, None, None),
        ("amdfp4", 100, None, 16),
        ("nvfp4", 100, None, 16),
        ("fp8", 100, None, None),
        ("int8", 100, None, None),
    ],
)
def test_which_widths_are_refused_and_which_padded(
    name: str, width: int, refused: int | None, padded: int | None
) -> None:
    scheme = recorded().schemes[name]
    assert (schemes.refused_width(scheme, width), schemes.padded_width(scheme, width)) == (refused, padded)


@pytest.mark.parametrize(
    ("name", "widths", "nearest"),
    [
        ("int4_wo_128", [576], "int4_wo_64"),
        ("int4_wo_128", [576, 96], "int4_wo_32"),
        ("int4_wo_32", [100], "int4_wo_per_channel"),
        ("uint4_wo_128", [576], "uint4_wo_64"),
        ("int4_wo_128", [256], "int4_wo_128"),
        ("int4_wa_64", [100], None),
        ("int4_wo_128", [], "int4_wo_128"),
    ],
)
def test_the_nearest_scheme_that_fits(name: str, widths: list[int], nearest: str | None) -> None:
    assert schemes.nearest_fitting(recorded().schemes[name], widths, recorded()) == nearest


def test_the_nearest_scheme_is_one_that_the_engine_has() -> None:
    engine = without_schemes("int4_wo_64")
    assert schemes.nearest_fitting(engine.schemes["int4_wo_128"], [576], engine) == "int4_wo_32"


@pytest.mark.parametrize(
    ("question", "names"),
    [
        (schemes.is_fp8, {"fp8", "ptpc_fp8"}),
        (schemes.is_static_int8, {"int8"}),
        (
            schemes.is_fp4,
            {name for name in ALL if "fp4" in name and name != "int4_fp8"},
        ),
        (schemes.is_low_integer, {name for name in ALL if "int4" in name}),
    ],
)
def test_kinds_of_schemes(question: object, names: set[str]) -> None:
    assert callable(question)
    assert {name for name in ALL if question(recorded().schemes[name])} == names


@pytest.mark.parametrize(("name", "expected"), [("int4_wo_33", "int4_wo_3"), ("FP8", "fp8"), ("zzzzzzzz", "")])
def test_similar_names(name: str, expected: str) -> None:
    hint = schemes.similar_names(name, ALL)
    assert expected in hint if expected else hint == ""
