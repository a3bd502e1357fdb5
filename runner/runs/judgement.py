"""What one check found, and how much it weighs."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum
from typing import Literal

from runner.runs.diagnosis.rule import Help
from schemas.artifacts.report import Check, FailureClass


class Weight(Enum):
    """What a judgement does to the status of the report."""

    NONE = "none"
    DOUBT = "doubt"
    BREAKS = "breaks"


@dataclass(frozen=True)
class Judgement:
    """One check as a person reads it, its weight, what kind of failure it is, and what to do about it.

    `helps` are changes of the plan that may help.
    """

    name: str
    outcome: Literal["ok", "failed", "skipped"]
    detail: str
    weight: Weight = Weight.NONE
    failure: FailureClass = FailureClass.UNKNOWN
    action: str = ""
    helps: tuple[Help, ...] = ()

    @property
    def check(self) -> Check:
        """The part of it that the report carries."""
        return Check(name=self.name, outcome=self.outcome, detail=self.detail)


def held(name: str, detail: str) -> Judgement:
    """It was looked at and is as it should be."""
    return Judgement(name, "ok", detail)


def broken(name: str, detail: str, failure: FailureClass, action: str, helps: tuple[Help, ...] = ()) -> Judgement:
    """It must hold and does not: the result is not what was approved, or no model at all. `helps` are changes of the
    plan that may help."""
    return Judgement(name, "failed", detail, Weight.BREAKS, failure, action, helps)


def doubtful(name: str, detail: str, action: str) -> Judgement:
    """The model is usable, but a person should look at this before relying on it."""
    return Judgement(name, "failed", detail, Weight.DOUBT, action=action)


def skipped(name: str, reason: str) -> Judgement:
    """It could not be looked at, or did not need to be, and nobody misses it."""
    return Judgement(name, "skipped", reason)


def missing(name: str, reason: str, action: str) -> Judgement:
    """It could not be looked at although the plan asked for it."""
    return Judgement(name, "skipped", reason, Weight.DOUBT, action=action)
