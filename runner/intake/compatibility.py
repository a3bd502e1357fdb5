"""Whether the installed engine can quantize a family of models at all."""

from __future__ import annotations

import difflib
from collections.abc import Sequence

from runner.host.interpreter_facts import InterpreterFacts
from runner.intake.config import ModelConfig
from runner.intake.versions import VersionRange
from schemas.artifacts.analysis import Compatibility
from schemas.catalog import Catalogue


def judge(
    config: ModelConfig,
    catalogue: Catalogue,
    facts: InterpreterFacts,
    *,
    quantized_by: str | None,
    code: Sequence[str],
    wanted: VersionRange | None,
    contradiction: str = "",
) -> Compatibility:
    """Compare a model's family with the installed packages.

    unsupported: the engine has no template, nothing can load the family, or the weights are not those of config.json (a
    `contradiction`). doubtful: it may work, and something known
    speaks against it. `code` is the model's own code, `wanted` the range of transformers that the engine asks for.
    """
    template = catalogue.templates.get(config.model_type)
    quark, transformers = f"amd-quark {facts.quark}", f"transformers {facts.transformers}"
    loadable = knows(catalogue, config.model_type)
    if template is None:
        status, message = "unsupported", f"{quark} has no template for {config.model_type}."
    elif not loadable and not code:
        status, message = "unsupported", f"{transformers} does not know {config.model_type}, so it cannot be loaded."
    elif contradiction:
        status, message = "unsupported", f"The model cannot be loaded: {contradiction}."
    elif not loadable:
        status, message = "doubtful", f"{transformers} can load {config.model_type} only by the model's own code."
    elif quantized_by:
        status, message = "doubtful", f"The model is quantized already ({quantized_by})."
    elif wanted and not wanted.holds(facts.transformers):
        status, message = "doubtful", f"{quark} asks for transformers {wanted.text}, and {transformers} is installed."
    else:
        status, message = "ok", f"{quark} has a template for {config.model_type}, and {transformers} knows it."
    return Compatibility.model_validate(
        {
            "status": status,
            "message": message,
            "template": template.model_type if template else None,
            "quark_version": facts.quark,
            "transformers_version": facts.transformers,
        }
    )


def knows(catalogue: Catalogue, model_type: str) -> bool:
    """Whether the installed transformers has classes of its own for a family; true where its families are unknown."""
    return not catalogue.known_model_types or model_type in catalogue.known_model_types


def similar_families(model_type: str, catalogue: Catalogue) -> list[str]:
    """Families with a template and a similar name, the most similar first."""
    return difflib.get_close_matches(model_type, sorted(catalogue.templates), n=3, cutoff=0.5)
