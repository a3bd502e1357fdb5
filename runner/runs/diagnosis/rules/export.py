"""Writing the result."""

from __future__ import annotations

from runner.runs.diagnosis.rule import Help, Told, rules_of
from schemas.artifacts.report import FailureClass

_OTHER = "Take another scheme: the engine quantizes with this one, but has no form in which to write it."

RULES = rules_of(
    FailureClass.EXPORT,
    Told(
        r"^AssertionError:? *$",
        "The engine cannot export a model of this scheme (mx6 and mx9 are such ones).",
        _OTHER,
        (Help.OTHER_SCHEME,),
        within=r"quark/torch/export/",
    ),
    Told(
        r"qmin and qmax of .* are not defined",
        "The engine cannot export a model of this scheme (bfp16 is such a one).",
        _OTHER,
        (Help.OTHER_SCHEME,),
    ),
    Told(
        r"^NotImplementedError: Architecture .* not supported",
        "The engine cannot write this model family as GGUF.",
        "Export to hf_format.",
    ),
    Told(
        r"SafetensorError: Error while serializing",
        "The weights could not be written.",
        "Look at the disk of the output folder, and delete what the run left there: it is no model.",
    ),
    Told(
        r"^(?:RuntimeError|ValueError): .*(?:shared tensors|share memory).*",
        "Tensors that share memory could not be written.",
        "Keep the engine's own exclusions for tied embeddings (lm_head), and plan again.",
    ),
)
