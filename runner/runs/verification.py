"""The report on an ended run: what it produced, held against what was approved."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from runner.planning import HostView
from runner.runs import diagnosis, words
from runner.runs.config_checks import config_judgements
from runner.runs.diagnosis import Diagnosis
from runner.runs.diagnosis.offers import Failed, offers
from runner.runs.evidence import Evidence
from runner.runs.intended import Intended
from runner.runs.judgement import Judgement, Weight, broken, held, missing, skipped
from runner.runs.output import Output, read_output
from runner.runs.perplexity import number
from runner.runs.run_checks import (
    exported_files_are_there,
    files_are_there,
    perplexity_is_as_expected,
    reload_went_well,
    size_is_as_predicted,
    tables_agree,
)
from runner.runs.tensor_checks import tensor_judgements
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.report import Offer, Perplexity, TensorCount, ValidationReport
from schemas.catalog import Catalogue

EXIT, CONTENT = "exit status", "content"
PROFILE = "quark_profile.yaml"
"""What the published script writes about its own phases, also when it fails."""


def verify(
    manifest: RunManifest, catalogue: Catalogue, evidence: Evidence, host: HostView | None = None
) -> ValidationReport:
    """The report on a run, from its evidence and from the files in its output folder, which are only read.

    `host` is what plans are made for here: what is offered after a failure is held against it.
    `failed` when something that must hold does not, `partial` when the model is usable but something is doubtful or
    could not be checked although the plan asked for it, else `success`. Whatever lies in the folder, this never raises.
    """
    intended = Intended.by(manifest, catalogue)
    output = read_output(Path(manifest.outputs.output_dir))
    failure = _failure(manifest, evidence)
    judgements = [_exit_status(evidence, failure), *_judgements(manifest, intended, output, evidence, failure)]
    breaking = [judgement for judgement in judgements if judgement.weight is Weight.BREAKS]
    doubts = [judgement for judgement in judgements if judgement.weight is Weight.DOUBT]
    status = "failed" if breaking else "partial" if doubts else "success"
    weighing = breaking or doubts
    actions = [*(failure.next_actions if failure else ()), *(judgement.action for judgement in weighing)]
    return ValidationReport(
        status=status,
        summary=_summary(manifest, output, evidence, breaking, doubts, failure),
        evidence=_quotes(evidence, failure, weighing),
        next_actions=list(dict.fromkeys(action for action in actions if action)),
        failure=(failure.failure if failure else breaking[0].failure) if breaking else None,
        cause=(failure.cause if failure else breaking[0].detail) if breaking else "",
        offers=_offers(manifest, catalogue, host, failure, breaking) if breaking else [],
        checks=[judgement.check for judgement in judgements],
        output_dir=words.plain(manifest.outputs.output_dir, 4096),
        files=list(output.files),
        tensors=_dtypes(output),
        size_bytes=None if output.problem else output.size_bytes,
        original_size_bytes=_original_bytes(manifest),
        perplexity=_perplexity(evidence),
        measured=evidence.measured,
    )


def _offers(
    manifest: RunManifest,
    catalogue: Catalogue,
    host: HostView | None,
    failure: Diagnosis | None,
    breaking: list[Judgement],
) -> list[Offer]:
    """What may help, as changes of the plan."""
    helps = failure.helps if failure else tuple(wanted for judgement in breaking for wanted in judgement.helps)
    if not helps:
        return []
    return offers(helps, Failed.by(manifest, catalogue, host, failure.short_of if failure else None))


def _failure(manifest: RunManifest, evidence: Evidence) -> Diagnosis | None:
    """Why the command failed; None when it did not, or when nobody knows how it ended."""
    if evidence.could_not_start is not None:
        return diagnosis.could_not_start(evidence.could_not_start)
    ended = diagnosis.ended_by_runner(
        evidence.ended_by, evidence.ended_because, evidence.oom_killed, evidence.exit_code
    )
    if ended is not None:
        return ended  # also with exit status 0: a command may end politely when it is asked to
    if evidence.exit_code in (0, None):
        return None
    found = diagnosis.examine(evidence.last_lines, evidence.exit_code)
    held = evidence.measured.host_memory_bytes if evidence.measured else None
    return diagnosis.likely_host_memory(found, held, manifest.inputs.quant_plan.estimates.host_memory_bytes_there)


def _exit_status(evidence: Evidence, failure: Diagnosis | None) -> Judgement:
    if failure is not None:
        return broken(EXIT, failure.cause, failure.failure, "")
    if evidence.exit_code is None:
        reason = "How the command ended is not known: its supervisor told nothing."
        return missing(EXIT, reason, "Read the end of the log before you rely on the result.")
    return held(EXIT, "The command ended with exit status 0.")


def _judgements(
    manifest: RunManifest, intended: Intended, output: Output, evidence: Evidence, failure: Diagnosis | None
) -> Iterator[Judgement]:
    """The checks that make sense for this run, in the order in which a person reads them."""
    if failure is not None and not set(output.sizes) - {PROFILE}:
        return  # the command failed before it wrote anything of a model: more lines would only say so again
    expected, plan = manifest.outputs.expected_files, intended.plan
    if plan.model_export != "hf_format":
        yield exported_files_are_there(output, expected)
        yield skipped(CONTENT, f"The content of {plan.model_export} files cannot be looked at here.")
        yield from tables_agree(output, evidence, intended)  # the only evidence of what was quantized
    else:
        files = files_are_there(output, expected)
        yield files
        if output.problem:
            return
        yield from config_judgements(output, intended)
        if output.tensors:
            yield from tensor_judgements(output, intended)
            yield size_is_as_predicted(output, plan.estimates.output_bytes)
            yield from tables_agree(output, evidence, intended)
    if failure is None:
        yield reload_went_well(evidence)
        yield perplexity_is_as_expected(evidence, intended)


def _summary(
    manifest: RunManifest,
    output: Output,
    evidence: Evidence,
    breaking: list[Judgement],
    doubts: list[Judgement],
    failure: Diagnosis | None,
) -> str:
    """One sentence, in the words of the published report."""
    folder = words.plain(manifest.outputs.output_dir, 200)
    if failure is not None:
        rest = [judgement for judgement in breaking if judgement.name != EXIT]
        whole = output.tensors and not rest
        left = f" The model in {folder} was complete by then." if whole else ""
        return f"Quantization failed: {failure.cause}{left}"
    if breaking:
        return f"The command ended well, but its result is not good: {breaking[0].detail}"
    original = _original_bytes(manifest)
    facts = [
        f"output {folder}",
        f"model size {words.size(output.size_bytes)}" + (f" (original {words.size(original)})" if original else ""),
        f"format {_FORMATS[manifest.inputs.quant_plan.model_export]}",
    ]
    facts += _perplexity_in_words(evidence)
    doubted = f", with doubts ({words.some(judgement.name for judgement in doubts)})" if doubts else ""
    return f"Quantization complete{doubted}: {', '.join(facts)}."


_FORMATS = {"hf_format": "Hugging Face safetensors", "onnx": "ONNX", "gguf": "GGUF"}


def _perplexity_in_words(evidence: Evidence) -> list[str]:
    measured = _perplexity(evidence)
    if measured is None or measured.quantized is None:
        return []
    told = [measured.dataset] if measured.dataset else []
    if measured.change is not None and measured.original is not None:
        told.append(f"{words.percent(measured.change)} from {number(measured.original)}")
    return [f"perplexity {number(measured.quantized)}" + (f" ({', '.join(told)})" if told else "")]


def _perplexity(evidence: Evidence) -> Perplexity | None:
    """What was measured; numbers that are not finite cannot be written as JSON and are told by their check."""
    if evidence.original_perplexity is None and evidence.quantized_perplexity is None:
        return None
    return Perplexity(
        dataset=words.plain(evidence.evaluation_dataset, 200),
        tokens=evidence.evaluated_tokens,
        original=_finite(evidence.original_perplexity),
        quantized=_finite(evidence.quantized_perplexity),
    )


def _finite(value: float | None) -> float | None:
    return value if value is not None and math.isfinite(value) else None


def _quotes(evidence: Evidence, failure: Diagnosis | None, weighing: list[Judgement]) -> list[str]:
    """What the report stands on: the log for a command that failed, else the checks that weigh."""
    details = [f"{judgement.name}: {judgement.detail}" for judgement in weighing if judgement.name != EXIT]
    return diagnosis.quoted(evidence.last_lines, failure.line, *failure.also) + details if failure else details


def _dtypes(output: Output) -> list[TensorCount]:
    tensors: Counter[str] = Counter()
    size: Counter[str] = Counter()
    for tensor in output.tensors:
        tensors[tensor.dtype] += 1
        size[tensor.dtype] += tensor.size_bytes
    return [TensorCount(dtype=dtype, tensors=tensors[dtype], size_bytes=number) for dtype, number in size.most_common()]


def _original_bytes(manifest: RunManifest) -> int | None:
    found = manifest.inputs.model_analysis.size
    return sum(file.size_bytes for file in found.files) or found.weight_bytes or None
