"""Measuring the result."""

from __future__ import annotations

from runner.runs.diagnosis.rule import Help, Told, Where, rules_of
from schemas.artifacts.report import FailureClass

_SKIP = "Skip the evaluation on a CPU host (--skip_evaluation, evaluation_intent none), or run it where a GPU is."
_ONLY_GPU = (
    "Every forward pass of this scheme needs a GPU: the model is quantized and exported, and cannot be measured."
)
_EVALUATES = r"\]:? Evaluating|\"phase\": ?\"evaluating\"|eval_model|ppl_eval|quantized model exported to"

RULES = rules_of(
    FailureClass.EVALUATION,
    Told(r"only implemented in CUDA devices", _ONLY_GPU, _SKIP, (Help.NO_EVALUATION,), within=_EVALUATES),
    Told(r"only implemented in CUDA devices", _ONLY_GPU, _SKIP, (Help.NO_EVALUATION,), Where.SUCCESS),
    Told(
        r"^(?=.*--quant_scheme[ =]mxfp4(?:\s|$))(?=.*--device[ =]cpu(?:\s|$))",
        "The command ended well without an evaluation. MXFP4 computes only on a GPU: on this host every forward pass "
        "of the result fails.",
        _SKIP,
        (Help.NO_EVALUATION,),
        Where.SUCCESS,
    ),
    Told(
        r"Couldn't reach '\S{0,80}wikitext\S{0,80}' on the Hub|DatasetNotFoundError: .{0,200}wikitext",
        "The text for the evaluation could not be fetched; the model was exported before.",
        "Put the dataset into the runner's mirror, let the runner use the network, or skip the evaluation.",
        (Help.NO_EVALUATION,),
        within=r"\]:? Evaluating|ppl_eval|quantized model exported to",
    ),
    Told(
        r"^(?:ModuleNotFoundError|ImportError): .*(?:lm_eval|lm-eval)",
        "The evaluation tasks need lm_eval, which is not installed.",
        "Install lm_eval into the quantization interpreter, or plan without tasks.",
        (Help.NO_EVALUATION,),
    ),
)
