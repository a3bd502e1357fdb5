"""What a change of perplexity means: as expected, more than expected, or a collapse.

A band belongs to a size class: a small model suffers more from the same scheme than a large one.
Sources: fp8 with fp8 KV cache, Llama-3.1-8B-Instruct +0.8 % and Llama-3.1-405B +2.1 %; int8 with rotation, per token,
+0.8 %; weight-only 4-bit on Llama-3-8B +3 to +10 % (AMD's published tables). SmolLM2-135M with amd-quark 0.13: fp8
+2.0 %, ptpc_fp8 +2.3 %, mxfp6_e2m3 +4.2 %, int4_wo_32 +44 %, static int8 +131 %. The limits of the small class are
these with some room.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum

from runner.planning import schemes
from runner.runs.words import percent
from schemas.catalog import Scheme

COLLAPSE = 2.0
"""A model whose perplexity is more than this many times the original's has collapsed."""

SUSPICIOUSLY_BETTER = -0.1
"""Quantization loses information. A perplexity better by more than this was measured on something else."""


class Precision(StrEnum):
    """How coarse the coarsest quantized weights are; what a band of perplexity belongs to."""

    FP8 = "FP8"
    INT8 = "INT8"
    SIX_BIT = "6-bit"
    FOUR_BIT = "4-bit"
    OTHER = "this scheme"


class SizeClass(StrEnum):
    """Classes of model size, by parameters."""

    SMALL = "models below 1 billion parameters"
    MEDIUM = "models of 1 to 100 billion parameters"
    LARGE = "models above 100 billion parameters"


_LIMITS: dict[tuple[Precision, SizeClass], float] = {
    (Precision.FP8, SizeClass.SMALL): 0.04,
    (Precision.FP8, SizeClass.MEDIUM): 0.01,
    (Precision.FP8, SizeClass.LARGE): 0.025,
    (Precision.INT8, SizeClass.MEDIUM): 0.02,
    (Precision.INT8, SizeClass.LARGE): 0.02,
    (Precision.SIX_BIT, SizeClass.SMALL): 0.08,
    (Precision.FOUR_BIT, SizeClass.SMALL): 0.60,
    (Precision.FOUR_BIT, SizeClass.MEDIUM): 0.10,
    (Precision.FOUR_BIT, SizeClass.LARGE): 0.10,
}


class Verdict(StrEnum):
    """What the change says of the quantized model."""

    EXPECTED = "expected"
    BEYOND = "beyond"
    BETTER = "better"
    COLLAPSED = "collapsed"


@dataclass(frozen=True)
class Judged:
    """A verdict and the sentence for people. `change` is relative; None where a number is infinite or not one."""

    verdict: Verdict
    words: str
    change: float | None = None


def size_class(parameters: int) -> SizeClass:
    """The class of a model with that many parameters."""
    if parameters < 1_000_000_000:
        return SizeClass.SMALL
    return SizeClass.MEDIUM if parameters < 100_000_000_000 else SizeClass.LARGE


def precision(used: Iterable[Scheme]) -> Precision:
    """The coarsest precision among the schemes that a plan uses: the fewest bits decide how much is lost."""
    specs = [spec for spec in map(schemes.stored, used) if spec is not None]
    spec = min(specs, key=lambda spec: schemes.bits(spec) or 64, default=None)
    if spec is None:
        return Precision.OTHER
    match schemes.bits(spec):
        case 8:
            return Precision.INT8 if schemes.is_integer(spec) else Precision.FP8
        case 6:
            return Precision.SIX_BIT
        case 4:
            return Precision.FOUR_BIT
        case _:
            return Precision.OTHER


def judge(original: float, quantized: float, kind: Precision, parameters: int) -> Judged:
    """What the quantized perplexity says beside the original's (finite and above 0), on the same tokens.

    A perplexity that is infinite, not a number or below 1 is no perplexity of a working model: a collapse.
    """
    if not math.isfinite(quantized) or quantized < 1:
        return Judged(Verdict.COLLAPSED, f"{number(original)} became {number(quantized)}: no working model has that.")
    change = quantized / original - 1
    fact = f"{number(original)} became {number(quantized)} ({percent(change)})"
    if quantized > COLLAPSE * original:
        return Judged(Verdict.COLLAPSED, f"{fact}, more than twice the original: the model has collapsed.", change)
    if change < SUSPICIOUSLY_BETTER:
        return Judged(Verdict.BETTER, f"{fact}: quantization cannot improve a model so much.", change)
    limit, expected = _expectation(kind, size_class(parameters))
    if change > limit:
        return Judged(Verdict.BEYOND, f"{fact}; {expected}.", change)
    return Judged(Verdict.EXPECTED, f"{fact}; {expected}.", change)


def _expectation(kind: Precision, size: SizeClass) -> tuple[float, str]:
    limit = _LIMITS.get((kind, size))
    if limit is not None:
        return limit, f"{kind} usually costs at most {percent(limit)} on {size}"
    widest = _LIMITS[Precision.FOUR_BIT, size]
    return widest, f"there are no reference numbers for {kind} on {size}, 4-bit usually costs at most {percent(widest)}"


def number(value: float) -> str:
    """A perplexity in four digits; what is not finite is said in words."""
    if not math.isfinite(value):
        return "not a number" if math.isnan(value) else "infinite"
    return f"{value:.4g}" if value < 10_000 else f"{value:.3g}"
