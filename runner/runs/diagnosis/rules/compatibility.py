"""Versions and programs that do not fit each other: transformers, the model's own code, servers of the result."""

from __future__ import annotations

from runner.runs.diagnosis.rule import Help, Told, Where, rules_of
from schemas.artifacts.report import FailureClass

RULES = rules_of(
    FailureClass.COMPATIBILITY,
    Told(
        r"does not recognize this architecture",
        "The installed transformers does not know this model's type.",
        "Install a version of transformers that knows it and that the engine supports. A model that brings its own "
        "code needs that code approved instead (trust_remote_code).",
    ),
    Told(
        r"'\w*Cache' object has no attribute|^ImportError: cannot import name '\w*Cache'"
        r"|has no attribute '(?:get_max_length|seen_tokens|get_usable_length)",
        "The model's own code uses a cache interface that newer versions of transformers removed.",
        "Load it by the class of transformers (--no_trust_remote_code) where that has one; else pin an older "
        "transformers that the engine supports.",
        (Help.NATIVE_CODE,),
    ),
    Told(
        r"^(?:ImportError|AttributeError): .*(?:cannot import name|has no attribute) '\w+'.*transformers",
        "The model's code or the engine does not fit the installed transformers.",
        "Install a version of transformers in the range that the engine supports.",
        (Help.NATIVE_CODE,),
    ),
    Told(
        r"No quark compatible scheme was found|Quark.{0,40}(?:not supported|unsupported) (?:scheme|quantization)",
        "The server cannot load this scheme, or this mix of schemes, as the engine exported it.",
        "Quantize with a scheme of the server's own list of Quark schemes, or take a newer server.",
        (Help.OTHER_SCHEME,),
    ),
    Told(
        r"param_data\.shape=.*loaded_weight\.shape=|loaded_weight\.shape .{0,80}param(?:_data)?\.shape",
        "The server gave a layer another shape than the checkpoint has: it does not match the excluded layers by the "
        "names of its fused ones.",
        "Take a newer SGLang or vLLM, or exclude all layers that the server fuses (q, k and v; gate and up), or none.",
    ),
    Told(
        r"scaling factor 1\.0 for fp8|KV cache scaling factors? .{0,60}(?:1\.0|default)",
        "The server does not read the calibrated scales of the KV cache for this model family and takes 1.0.",
        "Verify after each start of the server that this line is gone: take a newer server, or serve without the fp8 "
        "KV cache, and evaluate the result as it is served.",
        (Help.NO_KV_CACHE,),
        Where.WARNING,
    ),
    Told(
        r"^(?:ValueError|NotImplementedError): .*(?:Unknown|Unsupported|Cannot find) quantization method",
        "The server does not know this kind of checkpoint.",
        "Take a newer server, or a scheme that it lists for Quark.",
    ),
)
