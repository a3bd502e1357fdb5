"""Calibration and evaluation data, and whether a measurement can be made."""

from __future__ import annotations

from collections.abc import Iterator

from runner.planning import datasets, evaluation, flags, remote_code
from runner.planning.rules.registry import Case, Remark, blocks, informs, rule, samples, warns
from runner.planning.schemes import similar_names

_SPECIAL_TOKENS = 16
"""Tokens that a tokenizer puts around a text, at the most: all others stand for one byte of it or more."""

_USUAL_BYTES, _MANY_BYTES = 4, 6
"""Bytes of text for one token: 3 to 4 are usual, and hardly any text has more than 6."""

_MANY_TOKENS = 10_000_000
"""Tokens of calibration beyond which it is hardly meant: 150 times the published 128 samples of 512."""

_LONG_BATCH = 262_144
"""Tokens that pass the model at once, beyond which hardly any GPU holds the activations."""

_FLOPS = {"cuda": 2.5e15, "cpu": 1e13}
"""More operations a second than any one device of today does, so that a time from it is a least one."""

_NOTICED = 600.0
"""Seconds of computing from which on a person should hear of it."""

_BY_HESSIAN = frozenset({"gptq", "gptaq", "qronos"})


@rule("dataset_not_here")
def the_dataset_can_be_read(case: Case) -> Iterator[Remark]:
    """Without the dataset the run ends after the model was loaded. Source: seen with amd-quark 0.13 and no hub."""
    dataset, host = case.plan.calibration.dataset, case.host
    if datasets.is_available(dataset, host):
        return
    held = f"It holds {', '.join(sorted(host.datasets))}." if host.datasets else "It holds none."
    if dataset in datasets.named():
        yield blocks(f"The hub is off and this runner's mirror does not hold {dataset}.", held)
    else:
        alike = similar_names(dataset, [*host.datasets, *datasets.named()])
        yield blocks(
            f"{dataset} is neither a dataset that the engine knows nor a text file of this runner's mirror.",
            f"{alike} {held}".strip(),
        )


@rule("dataset_is_file")
def the_entry_point_takes_the_dataset(case: Case) -> Iterator[Remark]:
    """The engine's own programs take only the names that their parser lists. Source: amd-quark 0.13."""
    if case.plan.entry_point in ("quantize_quark", "quark_cli") and datasets.is_file(case.plan.calibration.dataset):
        yield blocks(
            f"{case.plan.entry_point} takes only named datasets, and {case.plan.calibration.dataset} is none.",
            "Take the entry point own, or a named dataset.",
        )


@rule("text_too_short")
def the_text_is_long_enough(case: Case) -> Iterator[Remark]:
    """Our own script refuses a text with fewer tokens than it is to calibrate and to evaluate on, before it loads.

    How many tokens a text has only its tokenizer tells; each stands for at least one byte of the file. Source: our
    script, and how byte-level tokenizers work.
    """
    wanted, size = case.plan.calibration, case.host.dataset_bytes.get(case.plan.calibration.dataset)
    if case.plan.entry_point != "own" or size is None or not datasets.is_file(wanted.dataset):
        return
    evaluated = flags.least_evaluated(case.plan)
    needed = wanted.num_calib_data * wanted.seq_len + evaluated
    if needed <= size // _USUAL_BYTES:
        return
    also = f" and {evaluated:,} for the evaluation" if evaluated else ""
    asked = f"{samples(wanted.num_calib_data)} of {wanted.seq_len:,} tokens{also} need {needed:,} tokens"
    fitting = max(0, size // _MANY_BYTES - evaluated) // wanted.seq_len
    hint = (
        f"Up to {samples(fitting)} of {wanted.seq_len:,} tokens fit even at {_MANY_BYTES} bytes a token "
        f"(num_calib_data {fitting}); or take a longer text."
        if fitting
        else "Not one sample of this length is sure to fit: take a shorter seq_len or a longer text."
    )
    if needed > size + _SPECIAL_TOKENS:
        yield blocks(f"{wanted.dataset} is too short: {asked}, and it has {size:,} bytes.", hint)
    else:
        yield warns(
            f"{wanted.dataset} may be too short: {asked}, and its {size:,} bytes usually are about "
            f"{size // _USUAL_BYTES:,} tokens.",
            hint,
        )


@rule("batch_not_full")
def every_sample_is_in_a_batch(case: Case) -> Iterator[Remark]:
    """The engine's programs drop the last batch when it is not full, without a word.

    Source: data loader of amd-quark 0.13.
    """
    wanted = case.plan.calibration
    left = wanted.num_calib_data % wanted.batch_size
    if case.plan.entry_point in ("quantize_quark", "quark_cli") and left != wanted.num_calib_data and left:
        yield warns(
            f"{samples(left)} of {wanted.num_calib_data:,} {'is' if left == 1 else 'are'} ignored: "
            f"{case.plan.entry_point} drops the last batch, which is not full.",
            f"Take {wanted.num_calib_data - left} or {wanted.num_calib_data - left + wanted.batch_size} samples, or a "
            "batch_size that divides their number.",
        )


@rule("batch_too_large")
def a_batch_can_be_filled(case: Case) -> Iterator[Remark]:
    """The engine's programs drop the last batch when it is not full; fewer samples would calibrate on nothing.

    Our own script keeps it. Source: data loader of amd-quark 0.13.
    """
    wanted = case.plan.calibration
    if case.plan.entry_point != "own" and wanted.batch_size > wanted.num_calib_data:
        yield blocks(
            f"A batch of {wanted.batch_size:,} cannot be filled from {samples(wanted.num_calib_data)}.",
            "Take a smaller batch_size or more samples.",
        )


@rule("calibration_huge")
def calibration_is_within_reason(case: Case) -> Iterator[Remark]:
    """Nothing stops a slip of the keyboard: 999,999 samples are calibrated for hours, days, or on a CPU for years.

    The least time counts two operations a weight and token, one pass. Source: the published defaults (128 samples of
    512 tokens) and arithmetic.
    """
    wanted, facts = case.plan.calibration, case.analysis
    tokens = wanted.num_calib_data * wanted.seq_len
    if tokens > _MANY_TOKENS:
        seconds = 2.0 * facts.size.parameters * tokens / _FLOPS[case.plan.device] if _passes_all(case) else 0.0
        least = f", which take {_in_words(seconds)} at the very least" if seconds >= _NOTICED else ""
        yield warns(
            f"{wanted.num_calib_data:,} samples of {wanted.seq_len:,} tokens are {tokens:,} tokens of calibration"
            f"{least}.",
            "128 to 512 samples of 512 to 2048 tokens are usual.",
        )
    together = min(wanted.batch_size, wanted.num_calib_data)  # a batch has no more samples than there are
    if together * wanted.seq_len > _LONG_BATCH:
        yield warns(
            f"One batch has {samples(together)} of {wanted.seq_len:,} tokens, which have to fit into memory at once.",
            "Take a smaller batch_size; it changes no result." if together > 1 else "Take a smaller seq_len.",
        )


def _passes_all(case: Case) -> bool:
    """Whether every token passes every weight: not in a mixture, and not where nothing is calibrated."""
    plan = case.plan
    static = any(spec.is_dynamic is False for scheme in case.used_schemes for spec in scheme.input)
    calibrates = static or bool(plan.algorithms) or plan.kv_cache_scheme or plan.attention_dtype
    return bool(calibrates) and not case.analysis.model.is_moe


def _in_words(seconds: float) -> str:
    units = (("years", 365 * 86400), ("days", 86400), ("hours", 3600), ("minutes", 60))
    unit, length = next(item for item in units if seconds >= 2 * item[1])
    return f"{seconds / length:,.0f} {unit}"


@rule("calibration_small")
def there_are_samples_for_the_algorithm(case: Case) -> Iterator[Remark]:
    """Algorithms of the GPTQ family estimate a matrix of in_features squared: fewer tokens than that leave it singular.

    It runs, because the engine damps the matrix, and the result is worse than plain rounding may be. Source: the
    algorithm (a sum of tokens' outer products has at most as many ranks as tokens).
    """
    wanted = case.plan.calibration
    tokens = wanted.num_calib_data * wanted.seq_len
    named = [name for name in dict.fromkeys(case.plan.algorithms) if name in _BY_HESSIAN]
    widest = max((target.group.in_features for target in case.quantized), default=0)
    if named and tokens < widest:
        yield warns(
            f"{', '.join(named)} on {tokens:,} tokens cannot see all of a layer with {widest:,} inputs.",
            "Take the published 128 samples of 512 tokens, or more.",
        )


@rule("seq_len_beyond_model")
def samples_fit_the_model(case: Case) -> Iterator[Remark]:
    """Samples longer than the positions that a model knows fail where positions are a table, and mislead elsewhere.

    Source: max_position_embeddings of the model's config.json.
    """
    most, wanted = case.analysis.model.max_positions, case.plan.calibration.seq_len
    if most is not None and wanted > most:
        yield warns(
            f"The samples have {wanted:,} tokens, and the model was made for at most {most:,}.",
            f"Take a seq_len of at most {most}.",
        )


@rule("evaluation_needs_gpu")
def the_evaluation_can_compute(case: Case) -> Iterator[Remark]:
    """MXFP4 activations quantize and export on a CPU, but every forward pass fails.

    Source: seen with amd-quark 0.13 ("only implemented in CUDA devices").
    """
    if case.plan.device != "cpu" or not evaluation.needs_gpu(case.plan, case.analysis, case.catalogue):
        return
    if case.plan.evaluation_intent != "none":
        yield blocks(
            "A model with MXFP4 activations computes only on a GPU, so it cannot be evaluated on this host.",
            "Skip the evaluation (evaluation_intent none).",
        )
    else:
        yield warns("A model with MXFP4 activations computes only on a GPU: this host can write it and not try it.")


@rule("result_unusable_here")
def the_engine_computes_with_its_result(case: Case) -> Iterator[Remark]:
    """Two-stage schemes with FP8 E5M3 scales are exported, and then every forward pass fails.

    Source: seen with amd-quark 0.13 for amdfp4_global16.
    """
    unusable = evaluation.cannot_compute(case.plan, case.analysis, case.catalogue)
    if unusable is None:
        return
    what = f"The installed engine cannot compute with a model that it wrote as {unusable}"
    if case.plan.evaluation_intent != "none":
        yield blocks(f"{what}: its evaluation fails.", "Skip the evaluation (evaluation_intent none), or take amdfp4.")
    else:
        yield warns(f"{what}: the check that loads it again will fail.", "Take amdfp4, unless other programs read it.")


@rule("evaluation_runs_code")
def the_evaluation_runs_no_unapproved_code(case: Case) -> Iterator[Remark]:
    """The engine's programs load the tokenizer for the evaluation with its custom code, whatever they were told.

    Source: seen with amd-quark 0.13.
    """
    if not remote_code.evaluation_would_run_code(case.plan, case.analysis):
        return
    if case.plan.evaluation_intent != "none":
        yield blocks(
            f"The evaluation by {case.plan.entry_point} would run code ({remote_code.named(case.analysis)}) that "
            "nobody approved.",
            "Skip the evaluation (evaluation_intent none), or take the entry point own.",
        )
    else:
        yield _not_evaluated(case, "the evaluation would run code of the model's repository")


@rule("evaluation_data_missing")
def the_evaluation_has_data(case: Case) -> Iterator[Remark]:
    """Without its evaluation data the run fails as its last act, after the export. Source: amd-quark 0.13, no hub."""
    if datasets.can_evaluate(case.plan.calibration.dataset, case.plan.entry_point, case.host):
        return
    missing = f"the hub is off and this runner's mirror has no {datasets.EVALUATION}"
    if case.plan.evaluation_intent != "none":
        yield blocks(f"The result cannot be evaluated: {missing}.", "Skip the evaluation, or fill the mirror.")
    else:
        yield _not_evaluated(case, missing)


def _not_evaluated(case: Case, why: str) -> Remark:
    """What is not measured for a reason of this host is a risk; what a person did not want measured is none."""
    rows = case.plan.decisions
    if any(row.decision == "evaluation_intent" and row.source == "request" for row in rows):
        return informs(f"Nothing is evaluated, as requested; it could not be either: {why}.")
    return warns(f"The result is not evaluated: {why}.")
