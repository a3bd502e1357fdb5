"""Calibration and evaluation data, and whether a measurement can be made."""

from __future__ import annotations

from collections.abc import Iterator

from runner.planning import datasets, evaluation, remote_code
from runner.planning.rules.registry import Case, Remark, blocks, rule, warns
from runner.planning.schemes import similar_names


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


@rule("batch_too_large")
def a_batch_can_be_filled(case: Case) -> Iterator[Remark]:
    """The engine's programs drop the last batch when it is not full; fewer samples would calibrate on nothing.

    Our own script keeps it. Source: data loader of amd-quark 0.13.
    """
    wanted = case.plan.calibration
    if case.plan.entry_point != "own" and wanted.batch_size > wanted.num_calib_data:
        yield blocks(
            f"A batch of {wanted.batch_size} cannot be filled from {wanted.num_calib_data} samples.",
            "Take a smaller batch_size or more samples.",
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
        yield warns("The result is not evaluated: a model with MXFP4 activations computes only on a GPU.")


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
        yield warns("The result is not evaluated: the evaluation would run code of the model's repository.")


@rule("evaluation_data_missing")
def the_evaluation_has_data(case: Case) -> Iterator[Remark]:
    """Without its evaluation data the run fails as its last act, after the export. Source: amd-quark 0.13, no hub."""
    if datasets.can_evaluate(case.plan.calibration.dataset, case.plan.entry_point, case.host):
        return
    missing = f"the hub is off and this runner's mirror has no {datasets.EVALUATION}"
    if case.plan.evaluation_intent != "none":
        yield blocks(f"The result cannot be evaluated: {missing}.", "Skip the evaluation, or fill the mirror.")
    else:
        yield warns(f"The result is not evaluated: {missing}.")
