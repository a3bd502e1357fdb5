"""What a rule of the diagnosis is: a pattern, where it has to stand, and what it means for a person."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import Enum
from typing import Literal

from schemas.artifacts.report import FailureClass

Memory = Literal["gpu", "host"]


class Where(Enum):
    """Where a pattern has to stand before it says anything."""

    EXCEPTION = "exception"
    """In the line that names the exception which ended the command, or in the message below it."""
    ANY_LINE = "any line"
    """In any line, where no exception ended the command: notes of the shell, the scheduler and the kernel."""
    WARNING = "warning"
    """The same, also of a command that ended well or goes on: what a server says and does not fail of."""
    SUCCESS = "success"
    """In any line of a command that ended well: what will go wrong although nothing did."""


class Help(Enum):
    """A kind of change of the plan that may help. What it is for a certain plan, `offers` decides."""

    SMALLER_BATCH = "calibrate in smaller batches"
    FEWER_SAMPLES = "calibrate on fewer samples"
    SHORTER_SAMPLES = "calibrate on shorter samples"
    SEVERAL_GPUS = "spread the model over several GPUs"
    FILE_TO_FILE = "quantize one file of weights after another"
    NO_EVALUATION = "skip the evaluation"
    OWN_PROGRAM = "let our own script quantize"
    OTHER_SCHEME = "take a scheme near in bits"
    FINER_SCHEME = "take a scheme that loses less"
    ALGORITHM = "add an algorithm that the engine has a configuration for"
    NO_ALGORITHM = "leave the algorithm out"
    WRITE_CONFIG = "write a configuration for the algorithm"
    NO_KV_CACHE = "leave the KV cache as it is"
    NATIVE_CODE = "load the model by the code of transformers"


@dataclass(frozen=True)
class Rule:
    """A pattern that stands there only when this is the cause.

    `within` must match some line of the output as well. Cause and action may name a group of the pattern, as {name}.
    `short_of` is the memory of which there was too little, if any.
    """

    pattern: re.Pattern[str]
    failure: FailureClass
    cause: str
    action: str
    helps: tuple[Help, ...] = ()
    where: Where = Where.EXCEPTION
    within: re.Pattern[str] | None = None
    short_of: Memory | None = None

    def advice(self, found: re.Match[str]) -> str:
        """The action, with what the pattern found. A name that the output says is cut where it is long."""
        named = {name: (text or "")[:80] for name, text in found.groupdict().items()}
        return self.action.format(**named) if named else self.action


@dataclass(frozen=True)
class Told:
    """A rule as its file writes it: the class is the file's own."""

    pattern: str
    cause: str
    action: str
    helps: tuple[Help, ...] = ()
    where: Where = Where.EXCEPTION
    within: str = ""
    short_of: Memory | None = None


def rules_of(failure: FailureClass, *told: Told) -> tuple[Rule, ...]:
    """The rules of one class, in the order in which they are asked."""
    return tuple(
        Rule(
            re.compile(rule.pattern),
            failure,
            rule.cause,
            rule.action,
            rule.helps,
            rule.where,
            re.compile(rule.within) if rule.within else None,
            rule.short_of,
        )
        for rule in told
    )
