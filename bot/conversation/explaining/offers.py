"""What a runner offers: what a name means, whether it can be used, and what else there is."""

from __future__ import annotations

from bot.conversation.explaining.asked import Asked
from bot.conversation.explaining.known import Known
from bot.conversation.wording import some
from bot.conversation.words.phrases import PhraseBook
from schemas.artifacts.plan import Finding, Severity
from schemas.catalog import Catalogue

_MOST_NAMES = 40
_MEANS = PhraseBook(
    *("what is", "what are", "whats", "what does", "what do", "explain", "describe", "tell me about", "define"),
    *("meaning of", "what means"),
)
_CAN = PhraseBook(
    *(f"{can} {who}" for can in ("can", "could", "may", "should") for who in ("i", "we", "you", "it", "one")),
    *("is it possible", "does it support", "is there", "do you support", "do you have", "what about", "how about"),
    *("supported", "possible", "available", "work", "works", "what if", "would", "is"),
)
_LISTED = PhraseBook("which", "what", "list", "show me", "tell me", "are there", "available", "offer", "choose from")
_ALL_OF = {
    "schemes": PhraseBook("schemes", "quantization schemes", "formats"),
    "algorithms": PhraseBook("algorithms", "algos"),
    "datasets": PhraseBook("datasets", "data sets"),
    "entry points": PhraseBook("entry points", "entry_points"),
}


def listed(asked: Asked, known: Known) -> str | None:
    """ "What schemes are there?"."""
    if known.offer is None or not asked.says(_LISTED):
        return None
    catalogue = known.offer.catalogue
    names = {
        "schemes": sorted(catalogue.schemes),
        "algorithms": list(catalogue.algorithms),
        "datasets": sorted(known.offer.datasets),
        "entry points": sorted(known.offer.entry_points),
    }
    told = [_these(what, names[what], known) for what, book in _ALL_OF.items() if asked.says(book)]
    return " ".join(told) or None


def _these(what: str, names: list[str], known: Known) -> str:
    if not names:
        return f"This runner names no {what} of its own."
    template = _template(known)
    built_in = ""
    if what == "algorithms" and template is not None:
        ready = some(template[1], _MOST_NAMES) or "none"
        built_in = f" With a built-in configuration for {template[0]}: {ready}."
    return f"This runner's {what}: {some(names, _MOST_NAMES)}.{built_in}"


def meaning(asked: Asked, known: Known) -> str | None:
    """ "What is awq?": the catalogue's own words."""
    if known.catalogue is None or not asked.says(_MEANS):
        return None
    told = [_described_algorithm(name, known.catalogue) for name in asked.algorithms]
    told += [_described_scheme(name, known.catalogue) for name in asked.schemes]
    return " ".join(told[:3]) or None


def usable(asked: Asked, known: Known) -> str | None:
    """ "Can I use awq?": whether the engine has it, for this family, and what is known against it."""
    catalogue = known.catalogue
    if catalogue is None or not (asked.says(_CAN) or asked.sentence.asks):
        return None
    told = [_usable_algorithm(name, known, catalogue) for name in asked.algorithms]
    told += [_usable_scheme(name, catalogue) for name in asked.schemes]
    if not told:
        return None
    names = [*asked.algorithms, *asked.schemes]
    against = [_sentence(finding) for finding in _findings(known) if any(name in finding.message for name in names)]
    offered = [name for name in names if name in catalogue.schemes or name in catalogue.algorithms]
    used = _used(known)
    ask = [f"{known.plan_called} uses {name}." for name in offered if name in used]
    ask = ask or [f'Say "use {name}" to see the plan with it.' for name in offered[:1]]
    return " ".join([*told[:3], *against[:2], *ask])


def _described_algorithm(name: str, catalogue: Catalogue) -> str:
    found = catalogue.described_algorithms.get(name)
    if name not in catalogue.algorithms and found is None:
        return f"This runner's engine has no algorithm {name}."
    if found is None or not found.description:
        return f"{name} is an algorithm of this runner's engine; nobody has described it."
    suits = f" It suits {found.suits.rstrip('.')}." if found.suits else ""
    return f"{name}: {found.description.rstrip('.')}.{suits}"


def _described_scheme(name: str, catalogue: Catalogue) -> str:
    found = catalogue.schemes.get(name)
    if found is None:
        return f"This runner's engine has no scheme {name}."
    if not found.description:
        group = f", with groups of {found.group_size}" if found.group_size else ""
        weights = ", ".join(dict.fromkeys(spec.dtype for spec in found.weight))
        what = f" of {weights} weights{group}" if weights else ""
        return f"{name} is a scheme{what} of this runner's engine; nobody has described it."
    use = f" For: {found.use_case.rstrip('.')}." if found.use_case else ""
    return f"{name}: {found.description.rstrip('.')}.{use}"


def _usable_algorithm(name: str, known: Known, catalogue: Catalogue) -> str:
    if name not in catalogue.algorithms:
        return f"This runner's engine has no algorithm {name}. It has: {some(catalogue.algorithms, _MOST_NAMES)}."
    template = _template(known)
    if template is None:
        return f"This runner's engine has {name}."
    family, built_in = template
    if name in built_in:
        return f"This runner's engine has {name}, with a built-in configuration for {family}."
    return (
        f"This runner's engine has {name}, but no configuration for {family} built in; "
        f'"use {name} and write its configuration" asks for a written one.'
    )


def _usable_scheme(name: str, catalogue: Catalogue) -> str:
    if name not in catalogue.schemes:
        return f"This runner's engine has no scheme {name}."
    use = catalogue.schemes[name].use_case.rstrip(".")
    return f"This runner's engine has {name}{f' ({use})' if use else ''}."


def _template(known: Known) -> tuple[str, list[str]] | None:
    """The family of the model, and the algorithms with a built-in configuration for it."""
    if known.catalogue is None or known.analysis is None:
        return None
    family = known.analysis.compatibility.template or known.analysis.model.model_type
    found = known.catalogue.templates.get(family)
    return (family, found.algorithms) if found is not None else None


def _used(known: Known) -> set[str]:
    """The schemes and algorithms of the plan."""
    plan = known.plan
    return {plan.global_scheme, *plan.layer_quant_config.values(), *plan.algorithms} if plan is not None else set()


def _findings(known: Known) -> list[Finding]:
    found = known.plan.findings if known.plan is not None else []
    return [finding for finding in found if finding.severity is not Severity.INFORMS]


def _sentence(finding: Finding) -> str:
    return f"{finding.message} {finding.hint}".strip()
