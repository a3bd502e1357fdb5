"""What a rule looks at, the list of rules, and how a rule joins it."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property

from runner.planning import decisions, layers
from runner.planning.host_view import HostView
from runner.planning.layers import Target
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import Finding, QuantPlan, Severity
from schemas.catalog import Catalogue, Scheme, Template


@dataclass(frozen=True)
class Case:
    """A plan and all that is known about it."""

    plan: QuantPlan
    analysis: ModelAnalysis
    catalogue: Catalogue
    host: HostView

    @cached_property
    def template(self) -> Template | None:
        """The engine's template of the family."""
        return decisions.template_of(self.analysis, self.catalogue)

    @cached_property
    def default_exclusions(self) -> list[str]:
        """What the engine leaves alone when the command names no exclusions."""
        return decisions.default_exclusions(self.analysis, self.catalogue)

    @cached_property
    def targets(self) -> list[Target]:
        """What happens to every group of layers."""
        return layers.targets(self.plan, self.analysis)

    @cached_property
    def quantized(self) -> list[Target]:
        """The targets that are not left alone."""
        return [target for target in self.targets if target.scheme is not None]

    @cached_property
    def named_schemes(self) -> dict[str, str]:
        """Every scheme that the plan names, and where."""
        overrides = {scheme: f"for {pattern}" for pattern, scheme in self.plan.layer_quant_config.items()}
        return {**overrides, self.plan.global_scheme: "as global scheme"}

    @cached_property
    def used_schemes(self) -> list[Scheme]:
        """The known schemes that layers will really have; those named by the plan where the layers are not known."""
        used = dict.fromkeys(target.scheme or "" for target in self.quantized)
        names = used if self.analysis.quantization_targets.groups else self.named_schemes
        return [self.catalogue.schemes[name] for name in names if name in self.catalogue.schemes]


@dataclass(frozen=True)
class Remark:
    """What a rule says: a finding that does not know its code yet."""

    severity: Severity
    message: str
    hint: str = ""


_LONGEST = 80
"""Characters of one pattern, name or path in a sentence: whole ones stand in the plan itself."""

_MOST = 8
"""Findings of one code and gravity; where there are more, the first three speak for the rest."""

_FEW = 3

Body = Callable[[Case], Iterator[Remark]]
Rule = Callable[[Case], Iterator[Finding]]

RULES: dict[str, Rule] = {}
"""Every rule by its code, in the order in which people read what they find."""


def rule(code: str) -> Callable[[Body], Rule]:
    """Register a rule under the code that its findings carry."""

    def register(body: Body) -> Rule:
        def found(case: Case) -> Iterator[Finding]:
            for remark in _told(list(body(case))):
                message, hint = _without_long_words(remark.message), _without_long_words(remark.hint)
                yield Finding(severity=remark.severity, code=code, message=message, hint=hint)

        if code in RULES:
            raise ValueError(f"two rules are called {code}")
        found.__doc__ = body.__doc__
        RULES[code] = found
        return found

    return register


def blocks(message: str, hint: str = "") -> Remark:
    """The plan fails in the engine, or must not run."""
    return Remark(Severity.BLOCKS, message, hint)


def warns(message: str, hint: str = "") -> Remark:
    """The plan runs, and something in it is doubtful or has no effect."""
    return Remark(Severity.WARNS, message, hint)


def informs(message: str, hint: str = "") -> Remark:
    """Good to know."""
    return Remark(Severity.INFORMS, message, hint)


def counted(count: int) -> str:
    """A number of layers for a sentence."""
    return "1 layer" if count == 1 else f"{count:,} layers"


def samples(count: int) -> str:
    """A number of samples for a sentence."""
    return "1 sample" if count == 1 else f"{count:,} samples"


def short(text: str) -> str:
    """A value in a sentence: of a long one the beginning and the end, which names the layer or the file."""
    if len(text) <= _LONGEST:
        return text
    tail = _LONGEST // 3
    return f"{text[: _LONGEST - tail - 3]}...{text[-tail:]}"


def few(values: Iterable[str]) -> str:
    """Several values in a sentence: the first three, and how many more there are."""
    shown = [short(value) for value in values]
    if len(shown) <= _FEW + 1:
        return ", ".join(shown)
    return f"{', '.join(shown[:_FEW])} and {len(shown) - _FEW:,} more"


def _told(remarks: list[Remark]) -> Iterator[Remark]:
    """The remarks; hundreds of one kind are told by three of them and a count, for nobody reads the others."""
    for severity in dict.fromkeys(remark.severity for remark in remarks):
        alike = [remark for remark in remarks if remark.severity is severity]
        if len(alike) <= _MOST:
            yield from alike
            continue
        yield from alike[:_FEW]
        yield Remark(severity, f"The like holds {len(alike) - _FEW:,} more times in this plan.")


def _without_long_words(text: str) -> str:
    return re.sub(rf"\S{{{_LONGEST + 1},}}", lambda word: short(word.group()), text)
