"""Canonical form and digests: equal documents have equal digests, and only those."""

from __future__ import annotations

import json
from typing import Any

import pytest
import rfc8785
from hypothesis import given
from hypothesis import strategies as st

from schemas.digest import canonical, digest

_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**70), 2**70)
    | st.text()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)
_DOCUMENTS = st.dictionaries(st.text(), _VALUES, max_size=5)


def _shuffled(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _shuffled(value[key]) for key in reversed(list(value))}
    return [_shuffled(item) for item in value] if isinstance(value, list) else value


@given(_DOCUMENTS)
def test_the_order_of_keys_does_not_matter(document: dict[str, Any]) -> None:
    assert digest(document) == digest(_shuffled(document))


@given(_DOCUMENTS)
def test_canonical_form_survives_reading_it_back(document: dict[str, Any]) -> None:
    once = canonical(document)
    assert canonical(json.loads(once)) == once


_SIMPLE = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53) + 1, 2**53 - 1) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=12,
)


@given(st.dictionaries(st.text(), _SIMPLE, max_size=5))
def test_what_needs_no_care_is_written_as_the_standard_says(document: dict[str, Any]) -> None:
    assert canonical(document) == rfc8785.dumps(document)


def test_every_character_is_written_as_the_standard_says() -> None:
    text = "".join(map(chr, [*range(0xD800), *range(0xE000, 0x10100), 0x10FFFF]))
    assert canonical({"text": text}) == rfc8785.dumps({"text": text})


def test_a_text_that_is_not_unicode_has_no_canonical_form() -> None:
    with pytest.raises(ValueError, match="no canonical form"):
        canonical({"text": "\ud800"})


def test_integers_beyond_two_to_the_53_are_strings() -> None:
    assert canonical({"at": 2**53 - 1, "ns": 2**53}) == b'{"at":9007199254740991,"ns":"9007199254740992"}'


def test_the_published_example_of_rfc_8785() -> None:
    document = {"numbers": [333333333.33333329, 1e30, 4.50, 2e-3, 1e-27], "literals": [None, True, False]}
    assert canonical(document) == (
        b'{"literals":[null,true,false],"numbers":[333333333.3333333,1e+30,4.5,0.002,1e-27]}'
    )


@pytest.mark.parametrize("value", [float("nan"), float("inf")])
def test_what_json_cannot_hold_has_no_canonical_form(value: float) -> None:
    with pytest.raises(ValueError, match="no canonical form"):
        canonical({"value": value})
