"""Schemes and algorithms in words, for people who have to choose: what each does and what it is good for.

Names are the engine's own, which may have fewer or more of them than this; what is not described here has no words and
works all the same. Where the published use case is not what happens, the words say what happens.
Source: AMD Quark's published quantization planning; the specifications of the schemes in amd-quark 0.13; seen with it.
"""

from __future__ import annotations

from typing import NamedTuple

from schemas.catalog import Algorithm


class SchemeWords(NamedTuple):
    """A scheme's heading, what it does, and what it is good for; all empty where nobody has described it."""

    family: str = ""
    description: str = ""
    use_case: str = ""


_INT4, _UINT4 = "INT4 weights", "UINT4 weights"
_MX, _AMD = "OCP microscaling", "AMD FP4"
_IN_MEMORY = "Experiments in memory; Quark 0.13 fails when it exports it."
_UNREADABLE = "For other programs only: Quark 0.13 fails to compute with what it wrote."

_SCHEMES = {
    "int4_wo_32": SchemeWords(
        _INT4, "Signed 4-bit weights, a scale for each 32", "A small model; the most exact of the INT4 schemes."
    ),
    "int4_wo_64": SchemeWords(
        _INT4, "Signed 4-bit weights, a scale for each 64", "A small model, between size and accuracy."
    ),
    "int4_wo_128": SchemeWords(
        _INT4, "Signed 4-bit weights, a scale for each 128", "A smaller model, where it may lose a little more."
    ),
    "int4_wo_per_channel": SchemeWords(
        _INT4,
        "Signed 4-bit weights, a scale for each output",
        "The smallest; fits layers of any width, loses the most.",
    ),
    "uint4_wo_32": SchemeWords(
        _UINT4, "4-bit weights with zero points, in groups of 32", "The one that GGUF export takes."
    ),
    "uint4_wo_64": SchemeWords(
        _UINT4, "4-bit weights with zero points, in groups of 64", "A small model whose weights are not centred."
    ),
    "uint4_wo_128": SchemeWords(
        _UINT4, "4-bit weights with zero points, in groups of 128", "The same with fewer scales."
    ),
    "uint4_wo_per_channel": SchemeWords(
        _UINT4, "4-bit weights with zero points, a scale for each output", "The same with the fewest scales."
    ),
    "int8": SchemeWords(
        "INT8",
        "INT8 weights and activations, one scale for a whole tensor",
        "CPU deployment, with smoothing or rotation: without them perplexity can collapse.",
    ),
    "fp8": SchemeWords(
        "FP8", "FP8 E4M3 weights and activations, one scale for a whole tensor", "The usual choice for GPU inference."
    ),
    "ptpc_fp8": SchemeWords(
        "FP8",
        "FP8 with a scale for each output and for each token, found while it runs",
        "More exact than fp8, where the server has kernels for it.",
    ),
    "mxfp4": SchemeWords(
        _MX,
        "FP4 weights and activations, 32 of which share an exponent",
        "Half the size of FP8 on GPUs with native FP4; computes on no CPU.",
    ),
    "mxfp4_weight_only": SchemeWords(
        _MX,
        "FP4 weights, 32 of which share an exponent; activations as they were",
        "A small model with exact activations.",
    ),
    "mxfp6_e3m2": SchemeWords(
        _MX, "FP6 with 3 exponent bits, 32 of which share another", "Values that spread widely, at 6 bits."
    ),
    "mxfp6_e2m3": SchemeWords(
        _MX, "FP6 with 3 mantissa bits, 32 of which share an exponent", "Finer steps than e3m2, at 6 bits."
    ),
    "mxfp4_mxfp6_e2m3": SchemeWords(_MX, "MXFP4 weights, MXFP6 activations", "MXFP4's size with less loss."),
    "mxfp4_fp8": SchemeWords(_MX, "MXFP4 weights, FP8 activations", "MXFP4's size with the least loss."),
    "amdfp4": SchemeWords(
        _AMD,
        "FP4 weights and activations, an FP8 E5M3 scale for each 16",
        "MI350 and MI355X, which compute FP4; MI300X only emulates it.",
    ),
    "amdfp4_g32": SchemeWords(
        _AMD, "FP4 weights and activations, an FP8 E5M3 scale for each 32", "As amdfp4, with half the scales."
    ),
    "amdfp4_global16": SchemeWords(
        _AMD, "FP4 with a scale for each 16 and one for the whole tensor above them", _UNREADABLE
    ),
    "amdfp4_global32": SchemeWords(
        _AMD, "FP4 with a scale for each 32 and one for the whole tensor above them", _UNREADABLE
    ),
    "nvfp4": SchemeWords(
        "NVIDIA FP4",
        "FP4 with an FP8 E4M3 scale for each 16 and one for the whole tensor",
        "NVIDIA Blackwell, which computes it; no GPU before it does.",
    ),
    "fp4_block16_scale_e4m3": SchemeWords(
        "NVIDIA FP4", "FP4 with an FP8 E4M3 scale for each 16 and one for the whole tensor", "The layout of nvfp4."
    ),
    "mx6": SchemeWords("Other", "6-bit blocks of 16 that share exponents", _IN_MEMORY),
    "mx9": SchemeWords("Other", "9-bit blocks of 16 that share exponents", _IN_MEMORY),
    "bfp16": SchemeWords("Other", "Block floating point: 8 values share an exponent, 9 bits each", _IN_MEMORY),
    "int4_wa_64": SchemeWords("Other", "INT4 weights and activations in groups of 64", "Research."),
    "int4_fp8": SchemeWords(
        "Other",
        "Weights rounded to FP8 and then to INT4 for each output, FP8 activations",
        "4-bit files, FP8 arithmetic.",
    ),
}

_ONE_STAGE = "not with two-stage schemes such as nvfp4"

_ALGORITHMS = {
    algorithm.name: algorithm
    for algorithm in (
        Algorithm(
            name="awq",
            description="Scales the channels that matter most before rounding, judged by their activations",
            suits=f"INT4 and UINT4 weights; {_ONE_STAGE}",
        ),
        Algorithm(
            name="gptq",
            description="Rounds column by column and lets later columns make up for the error",
            suits="INT4 and UINT4 weights; neither MXFP6 nor two-stage schemes such as nvfp4",
        ),
        Algorithm(
            name="gptaq",
            description="GPTQ that also makes up for errors of the layers before",
            suits="INT4 and UINT4 weights; neither MXFP6 nor two-stage schemes such as nvfp4",
        ),
        Algorithm(
            name="qronos",
            description="Corrects earlier rounding first, then rounds on; compares with the original activations",
            suits="Most schemes; neither MXFP6 nor two-stage schemes such as nvfp4",
        ),
        Algorithm(
            name="smoothquant",
            description="Moves outliers out of the activations into the weights",
            suits="INT8 and FP8",
        ),
        Algorithm(
            name="autosmoothquant",
            description="SmoothQuant that searches how much to move, layer by layer",
            suits=f"INT8 and FP8; {_ONE_STAGE}",
        ),
        Algorithm(
            name="rotation",
            description="Turns the hidden space so that no channel stands out",
            suits="Any scheme, in families whose every layer is known to it",
        ),
        Algorithm(
            name="autoround",
            description="Learns how to round each weight",
            suits="Nothing in the standard flow of Quark 0.13, which fails with it",
        ),
        Algorithm(
            name="twobitscalar",
            description="Snaps weights to four levels before they are quantized",
            suits="Experiments with 2-bit weights; the file keeps the scheme's own bits",
        ),
    )
}


def of_scheme(name: str) -> SchemeWords:
    """The words for a scheme; empty ones for a name that is not described."""
    return _SCHEMES.get(name, SchemeWords())


def of_algorithm(name: str) -> Algorithm | None:
    """The words for an algorithm; None for a name that is not described."""
    return _ALGORITHMS.get(name)
