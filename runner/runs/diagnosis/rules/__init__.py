"""What is known of failures, as data: one module for each class. A rule says only what its pattern makes certain.

Patterns are of messages, which stay when paths and line numbers change. Sources: amd-quark 0.13, transformers 5.16,
torch 2.13, huggingface_hub 1, and public reports of servers that load the result.
"""

from __future__ import annotations

from runner.runs.diagnosis.rule import Rule, Where
from runner.runs.diagnosis.rules import (
    compatibility,
    configuration,
    environment,
    evaluation,
    export,
    host,
    killed,
    load,
    memory,
    quantization,
)

_ALL = (
    *host.RULES,
    *memory.RULES,
    *environment.RULES,
    *configuration.RULES,
    *evaluation.RULES,
    *quantization.RULES,
    *export.RULES,
    *compatibility.RULES,
    *load.RULES,
    *killed.RULES,
)


def rules(where: Where) -> tuple[Rule, ...]:
    """The rules for one place; those that need more than one line first, since they say more."""
    return _PLACED[where]


_PLACED = {
    where: tuple(sorted((rule for rule in _ALL if rule.where is where), key=lambda rule: rule.within is None))
    for where in Where
}
