"""The quantization itself: algorithms, observers, numbers."""

from __future__ import annotations

from runner.runs.diagnosis.rule import Help, Told, rules_of
from schemas.artifacts.report import FailureClass

RULES = rules_of(
    FailureClass.QUANTIZATION,
    Told(
        r"^KeyError: 'autoround'",
        "The engine's standard flow cannot run autoround.",
        "Plan with another algorithm, or without one.",
        (Help.NO_ALGORITHM,),
    ),
    Told(
        r"only implemented in CUDA devices",
        "The engine computes with this scheme only on a GPU.",
        "Quantize on a host with a GPU, or take another scheme or algorithm.",
        (Help.NO_ALGORITHM, Help.OTHER_SCHEME),
    ),
    Told(
        r"(?:not positive[- ]definite|linalg\.cholesky|LinAlgError|torch\.linalg)",
        "The Hessian of a layer could not be inverted: the calibration says too little of it.",
        "Calibrate on more or longer samples, or take another algorithm (awq) or none.",
        (Help.NO_ALGORITHM,),
    ),
    Told(
        r"contains (?:either )?[`']?(?:inf|nan|NaN)[`']?|(?:NaN|nan|Inf|inf)s? (?:found|detected|in)\b",
        "The computation gave numbers that are infinite or none.",
        "Load the model as bfloat16 or float32 (data_type), and look whether its files are whole.",
    ),
    Told(
        r"^(?:RuntimeError|ValueError): (?:num_samples should be|.*(?:empty|no) calibration (?:data|set))"
        r"|dataset .{0,60}(?:too (?:few|small)|not enough)",
        "There was too little calibration data.",
        "Calibrate on fewer or shorter samples, or on a longer text.",
        (Help.FEWER_SAMPLES, Help.SHORTER_SAMPLES),
    ),
)
