"""Checks that need more than the output's tensors: its files and size, the log's tables, reload and perplexity."""

from __future__ import annotations

import math
from collections.abc import Iterator
from fnmatch import fnmatchcase

from runner.planning import layers as planned_layers
from runner.runs import words
from runner.runs.diagnosis.rule import Help
from runner.runs.evidence import Evidence
from runner.runs.intended import Intended
from runner.runs.judgement import Judgement, broken, doubtful, held, missing, skipped
from runner.runs.output import CONFIG, Output
from runner.runs.perplexity import Verdict, judge, number, precision
from runner.runs.tensor_checks import quantized_layers
from schemas.artifacts.report import FailureClass

FILES, SIZE, EXCLUDED_TABLE, REPLACED_TABLE = "files", "size", "log: exclusions", "log: replaced modules"
RELOAD, PERPLEXITY = "reload", "perplexity"

SIZE_TOLERANCE = 0.05
_SMALL_BYTES = 1 << 20
"""Below this, headers and JSON files decide the size, which the estimate only counts roughly."""

_TOKENIZERS = ("tokenizer.json", "tokenizer.model", "tokenizer_config.json", "vocab.*", "*.tiktoken", "spiece.model")
_LOSES_LESS = (Help.ALGORITHM, Help.FINER_SCHEME)
_RUN_AGAIN = "Delete the folder, so that nobody takes it for a model, and ask for a new run."


def files_are_there(output: Output, expected: list[str]) -> Judgement:
    """config.json, weights, a tokenizer and what else the manifest expects; none of them empty."""
    if output.problem:
        return broken(FILES, output.problem, FailureClass.EXPORT, "Look in the log at what the export said.")
    sizes = output.sizes
    linked = [name for name in output.others if name == CONFIG or name.endswith(".safetensors")]
    if linked:
        detail = f"{words.some(linked)} is a link or something else that is no file, and it is not followed."
        return broken(FILES, detail, FailureClass.EXPORT, "Find out what made it; the engine writes files.")
    empty = [name for name, size in sizes.items() if size == 0 and _matches(name, expected)]
    weights = any(name.endswith(".safetensors") and size for name, size in sizes.items())
    tokenizer = any(_matches(name, _TOKENIZERS) for name in sizes)
    if not weights and CONFIG in sizes:
        beside = "config.json and the tokenizer are" if tokenizer else "config.json is"
        detail = f"{beside} there, but no weights: a disk that fills up leaves a folder that only looks like a model."
        return broken(FILES, detail, FailureClass.EXPORT, f"Look whether the disk is full. {_RUN_AGAIN}")
    if empty:
        return broken(FILES, f"{words.some(empty)} is empty.", FailureClass.EXPORT, _RUN_AGAIN)
    if CONFIG not in sizes or not weights:
        lacking = "Neither config.json nor weights are" if CONFIG not in sizes and not weights else "config.json is not"
        return broken(FILES, f"{lacking} in {words.plain(output.folder)}.", FailureClass.EXPORT, _RUN_AGAIN)
    if output.weights_problem or not output.tensors:
        detail = output.weights_problem or "The weight files hold no tensors."
        return broken(FILES, detail, FailureClass.EXPORT, _RUN_AGAIN)
    absent = [pattern for pattern in expected if not any(_matches(name, [pattern]) for name in sizes)]
    if absent or not tokenizer:
        detail = f"{words.some(absent) or 'A tokenizer'} is missing in the output."
        return doubtful(FILES, detail, "Copy what is missing from the original model.")
    if output.others:
        detail = f"{words.some(output.others)} is a link or something else that is no file; it was not looked at."
        return doubtful(FILES, detail, "Replace it by the file itself, or remove it.")
    return held(FILES, f"{words.count(len(sizes), 'file')}, {words.size(output.size_bytes)}; none is empty.")


def exported_files_are_there(output: Output, expected: list[str]) -> Judgement:
    """The same for a format whose content cannot be looked at here: what the manifest expects, not empty."""
    if output.problem:
        return broken(FILES, output.problem, FailureClass.EXPORT, "Look in the log at what the export said.")
    full = [name for name, size in output.sizes.items() if size]
    absent = [pattern for pattern in expected if not any(_matches(name, [pattern]) for name in full)]
    if absent or not full:
        detail = f"{words.some(absent) or 'Everything'} is missing or empty in {words.plain(output.folder)}."
        return broken(FILES, detail, FailureClass.EXPORT, _RUN_AGAIN)
    return held(FILES, f"{words.count(len(full), 'file')}, {words.size(output.size_bytes)}.")


def _matches(name: str, patterns: list[str] | tuple[str, ...]) -> bool:
    """A pattern names a file of the folder itself, unless it has a slash."""
    return any(fnmatchcase(name, pattern) and ("/" in pattern or "/" not in name) for pattern in patterns)


def size_is_as_predicted(output: Output, predicted: int | None) -> Judgement:
    """The bytes of all files against what the plan predicted."""
    actual = output.size_bytes
    if predicted is None:
        return skipped(SIZE, f"{words.size(actual)}; the plan made no prediction.")
    off = (actual - predicted) / max(predicted, 1)
    fact = f"{words.size(actual)} where {words.size(predicted)} were predicted ({words.percent(off)})"
    if abs(actual - predicted) <= max(SIZE_TOLERANCE * predicted, _SMALL_BYTES):
        return held(SIZE, f"{fact}.")
    return doubtful(SIZE, f"{fact}; more than 5 % off.", "Look which files differ from what the plan describes.")


def tables_agree(output: Output, evidence: Evidence, intended: Intended) -> Iterator[Judgement]:
    """What the engine logged of exclusions and replaced modules against the plan and against the output."""
    yield _exclusions_agree(evidence, intended)
    yield _replacements_agree(output, evidence, intended)


def _exclusions_agree(evidence: Evidence, intended: Intended) -> Judgement:
    planned = intended.plan.exclude_layers
    if evidence.exclusions is None:
        if not planned:
            return held(EXCLUDED_TABLE, "The plan excludes nothing, and the engine logged no exclusions.")
        return skipped(EXCLUDED_TABLE, "The log has no table of exclusions.")
    logged = evidence.exclusions.modules_excluded
    lost = [pattern for pattern in planned if pattern not in logged]
    added = [pattern for pattern in logged if pattern not in planned]
    action = "Compare the exclusions of the plan with the command that ran."
    if lost or added:
        parts = [f"{words.some(lost)} of the plan is not in it"] if lost else []
        parts += [f"{words.some(added)} is not in the plan"] if added else []
        return doubtful(EXCLUDED_TABLE, f"The engine's table of exclusions differs: {'; '.join(parts)}.", action)
    idle = evidence.exclusions.without_effect
    if idle and intended.plan.exclude_layers_changed:
        return doubtful(EXCLUDED_TABLE, f"{words.some(idle)} matched no module and excluded nothing.", action)
    told = ", ".join(f"{words.plain(pattern, 80)} {count:,}" for pattern, count in list(logged.items())[:5])
    return held(EXCLUDED_TABLE, f"The engine excluded what the plan says: {told}.")


def _replacements_agree(output: Output, evidence: Evidence, intended: Intended) -> Judgement:
    table = evidence.replacements
    provisional = any(map(intended.is_provisional, intended.groups))
    if table is None:
        if provisional:
            reason = "The log has no table of replaced modules, and the analysis could not count all layers before."
            return missing(REPLACED_TABLE, reason, "Count the quantized layers yourself before you rely on the result.")
        return skipped(REPLACED_TABLE, "The log has no table of replaced modules.")
    if table.replaced == 0:
        action = "Look whether the model was quantized before: the engine replaces nothing then."
        return broken(REPLACED_TABLE, "The engine replaced no module.", FailureClass.QUANTIZATION, action)
    quantized = len(quantized_layers(output))
    # A layer that is excluded but fills the KV cache is replaced too: for the scale of its output.
    for_cache = sum(not layer.quantized and "output_scale" in layer.tensors for layer in output.layers.values())
    fact = f"The engine replaced {words.count(table.replaced, 'module')}"
    action = "Look in the log at the two tables and at the export."
    if output.layers and table.replaced != quantized + for_cache:
        detail = f"{fact}, but the output has {words.count(quantized, 'quantized layer')}."
        return doubtful(REPLACED_TABLE, detail, action)
    planned = sum(target.count for target in planned_layers.quantized(intended.plan, intended.analysis))
    known = not provisional and bool(intended.groups)
    if output.layers:
        if known and quantized != planned:
            return doubtful(REPLACED_TABLE, f"{fact}; the plan has {planned:,}.", action)
        return held(REPLACED_TABLE, f"{fact}, as many as the output has.")
    # Without an output that can be read, the plan is all there is to compare with.
    if known and not intended.plan.kv_cache_scheme and table.replaced != planned:
        return doubtful(REPLACED_TABLE, f"{fact}; the plan has {planned:,}.", action)
    return held(REPLACED_TABLE, f"{fact}{', as many as the plan has' if known and table.replaced == planned else ''}.")


def reload_went_well(evidence: Evidence) -> Judgement:
    """Whether the finished model was loaded again and computes."""
    outcome = evidence.reload
    if outcome is None:
        return skipped(RELOAD, "Loading the result again was not tried.")
    reason = words.plain(outcome.reason)
    action = "Do not serve it before it loads: read the reason, then the log."
    if outcome.ok is None:
        return skipped(RELOAD, reason or "This host cannot load the result.")
    if not outcome.ok:
        return broken(
            RELOAD, f"The result cannot be loaded: {reason or 'no reason was given'}", FailureClass.LOAD, action
        )
    if outcome.logits_finite is False:
        detail = "The result loads, but computes numbers that are infinite or none."
        return broken(RELOAD, detail, FailureClass.QUANTIZATION, action)
    took = f" in {outcome.seconds:.0f} s" if outcome.seconds is not None and math.isfinite(outcome.seconds) else ""
    computes = " and computes finite numbers" if outcome.logits_finite else ""
    return held(RELOAD, f"The result was loaded again{took}{computes}.")


def perplexity_is_as_expected(evidence: Evidence, intended: Intended) -> Judgement:
    """The quantized model's perplexity beside the original's."""
    original, quantized = evidence.original_perplexity, evidence.quantized_perplexity
    where = f" on {words.plain(evidence.evaluation_dataset, 80)}" if evidence.evaluation_dataset else ""
    asked = intended.plan.evaluation_intent != "none"
    if quantized is None:
        if not asked:
            return skipped(PERPLEXITY, "The plan asks for no evaluation.")
        reason = "The plan asks for an evaluation, and none took place."
        return missing(PERPLEXITY, reason, "Evaluate the result before you rely on it.")
    if original is None or not math.isfinite(original) or original < 1:
        return _without_original(quantized, where, intended)
    kind, size = precision(intended.schemes_used), intended.analysis.size.parameters
    verdict = judge(original, quantized, kind, size)
    match verdict.verdict:
        case Verdict.COLLAPSED:
            action = "Do not serve it. Take a finer scheme, or an algorithm that fits (rotation or smoothing for int8)."
            return broken(
                PERPLEXITY, f"Perplexity{where}: {verdict.words}", FailureClass.EVALUATION, action, _LOSES_LESS
            )
        case Verdict.BEYOND:
            action = "Evaluate your own tasks; a finer scheme, an algorithm or more calibration samples may help."
            return doubtful(PERPLEXITY, f"Perplexity{where}: {verdict.words}", action)
        case Verdict.BETTER:
            action = "Look whether both were measured on the same text."
            return doubtful(PERPLEXITY, f"Perplexity{where}: {verdict.words}", action)
        case Verdict.EXPECTED:
            return held(PERPLEXITY, f"Perplexity{where}: {verdict.words}")


def _without_original(quantized: float, where: str, intended: Intended) -> Judgement:
    """Only one number: it can still say that the model knows nothing."""
    if not math.isfinite(quantized):
        detail = f"Perplexity{where} is {number(quantized)}: the model has collapsed."
        return broken(PERPLEXITY, detail, FailureClass.EVALUATION, "Do not serve it. Take a finer scheme.", _LOSES_LESS)
    guessing = intended.analysis.model.vocab_size
    if guessing and quantized > 2 * guessing:
        detail = f"Perplexity{where} is {number(quantized)}, worse than guessing among {guessing:,} tokens."
        return doubtful(PERPLEXITY, detail, "Evaluate the original on the same text before you rely on the result.")
    reason = f"Perplexity{where} is {number(quantized)}; the original was not measured, so nothing is compared."
    return skipped(PERPLEXITY, reason)
