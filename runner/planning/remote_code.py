"""Code that a model repository brings along, and who would run it."""

from __future__ import annotations

from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import QuantPlan
from schemas.catalog import Catalogue


def brings_code(analysis: ModelAnalysis) -> bool:
    """Whether the repository names code of its own, for the model or for the tokenizer."""
    return analysis.model.trust_remote_code or bool(analysis.model.remote_code)


def needs_code(analysis: ModelAnalysis, catalogue: Catalogue) -> bool:
    """Whether the model cannot be loaded without that code: the installed transformers does not know its type."""
    return brings_code(analysis) and analysis.model.model_type not in catalogue.known_model_types


def evaluation_would_run_code(plan: QuantPlan, analysis: ModelAnalysis) -> bool:
    """Whether evaluating would run unapproved code.

    The engine's own programs load the tokenizer for the evaluation with its custom code, whatever they were told; our
    script does not. Source: seen with amd-quark 0.13.
    """
    return brings_code(analysis) and not plan.trust_remote_code and plan.entry_point in ("quantize_quark", "quark_cli")


def named(analysis: ModelAnalysis) -> str:
    """Where the code is named, for a sentence."""
    return "; ".join(analysis.model.remote_code[:3]) or "config.json"
