"""What the host and the entry point can do."""

from __future__ import annotations

from collections.abc import Iterator

from runner.planning import flags, placement, remote_code
from runner.planning.rules.registry import Case, Remark, blocks, rule, warns


@rule("device_unknown")
def the_device_is_known(case: Case) -> Iterator[Remark]:
    """Missing evidence is neither a GPU nor its absence; a run on a device that is not there ends at its start."""
    if case.plan.device == "cuda" and placement.is_cpu_build(case.catalogue):
        yield blocks(
            "The plan runs on a GPU, but the installed torch is a build for the CPU.",
            "Plan again with this runner, or install a torch build for the GPU.",
        )
    elif case.plan.device == "cuda" and case.host.accelerator == "cpu":
        yield blocks("The plan runs on a GPU, but this host has none.", "Plan again with this runner.")
    elif case.plan.device == "cuda" and not case.host.has_gpu:
        yield warns(
            "Whether this host has a GPU could not be found out; without one the run ends at its start.",
            "See what `ptq-runner doctor` looked at.",
        )
    elif case.plan.device == "cpu" and case.host.has_gpu:
        yield warns(
            "This host has a GPU, but the plan runs on the CPU.",
            "Install a torch build for the GPU in the quantization interpreter.",
        )


@rule("entry_point_missing")
def the_entry_point_is_here(case: Case) -> Iterator[Remark]:
    """A program that was not found cannot run."""
    if case.plan.entry_point != "auto" and case.plan.entry_point not in case.host.entry_points:
        found = ", ".join(sorted(case.host.entry_points)) or "none"
        yield blocks(
            f"The entry point {case.plan.entry_point} was not found on this host.",
            f"Usable here: {found}. A Quark checkout is named by quark.checkout in runner.yaml.",
        )


@rule("checkout_differs")
def the_entry_point_fits_the_engine(case: Case) -> Iterator[Remark]:
    """A program of another release than the installed engine's ends at its start."""
    if why := case.host.unfit.get(case.plan.entry_point):
        yield blocks(
            f"{case.plan.entry_point} {why}: it would end at its start.",
            "Check out the release that is installed, or take another entry point.",
        )


@rule("flag_not_offered")
def the_entry_point_can_be_told(case: Case) -> Iterator[Remark]:
    """What a program has no flag for would be left out of its command without a word.

    Source: the parsers of the entry points, amd-quark 0.13; a site's script takes what they have in common.
    """
    program = case.plan.entry_point
    if program == "auto":
        return
    for gap in flags.gaps(program, flags.asked(case.plan, case.analysis)):
        what = f"{gap.flag.says} ({gap.flag.name})"
        if gap.value is None:
            message = f"{program} has no flag for {what}."
        else:
            message = f"{program} takes only {', '.join(gap.taken)} for {what}, not {gap.value}."
        yield blocks(message, _who_can(gap, case))


def _who_can(gap: flags.Gap, case: Case) -> str:
    here = case.host.entry_points
    named = [name if name in here else f"{name} (not found on this host)" for name in gap.others]
    if gap.flag.name == "--revision":
        return f"Take {' or '.join(named)}, or download the model to this host first."
    return (
        f"Take {' or '.join(named)}, or plan without it." if named else "No entry point can do that: plan without it."
    )


@rule("cli_limits")
def quark_cli_can_run(case: Case) -> Iterator[Remark]:
    """quark-cli fails on a CPU host, blaming GPU memory, and changes its working directory, so that no mirror helps it.

    Source: quark-cli of amd-quark 0.13; with a GPU it was not tried here.
    """
    if case.plan.entry_point != "quark_cli":
        return
    if case.plan.device == "cpu":
        yield blocks("quark-cli does not work without a GPU.", "Take the entry point own.")
    if case.host.offline:
        yield blocks("quark-cli reads datasets only from the hub, which is off here.", "Take quantize_quark or own.")
    yield warns("Commands of quark-cli are made by its documentation and were not tried by this project.")


@rule("site_may_run_code")
def a_sites_script_runs_no_unapproved_code(case: Case) -> Iterator[Remark]:
    """The flags that all programs have in common say nothing of remote code, so that a site's script decides alone."""
    if case.plan.entry_point == "site" and remote_code.brings_code(case.analysis) and not case.plan.trust_remote_code:
        yield blocks(
            f"The site's script cannot be told not to run the model's own code ({remote_code.named(case.analysis)}).",
            "Take another entry point for this model.",
        )


@rule("several_gpus")
def several_gpus_can_be_used(case: Case) -> Iterator[Remark]:
    """Without a GPU, spreading a model fails with a MemoryError that blames GPU memory; with one GPU it does nothing.

    Source: seen with amd-quark 0.13.
    """
    plan = case.plan
    asked = [name for name in ("multi_gpu", "multi_device") if getattr(plan, name)]
    for name in asked if plan.device == "cpu" else []:
        yield blocks(f"{name} needs a GPU, and this plan runs on the CPU.", f"Plan without {name}.")
    if plan.multi_device and plan.algorithm:
        yield blocks(
            f"With multi_device the engine does not support algorithms, and the plan has {plan.algorithm}.",
            "Plan without multi_device, or without an algorithm.",
        )
    if plan.multi_gpu and plan.device != "cpu" and case.host.gpus_per_run == 1:
        yield warns(
            "multi_gpu has no effect: a run of this host gets one GPU.",
            "gpus.per_run in runner.yaml says how many a run gets.",
        )


@rule("file2file_limits")
def file_to_file_can_do_it(case: Case) -> Iterator[Remark]:
    """File to file loads no model, so that nothing is calibrated, optimized or measured; it works only on a GPU.

    It removes the output folder first and when it fails, which is why that never touches the model's. Source:
    quantize_quark.py of amd-quark 0.13.
    """
    plan = case.plan
    if not plan.file2file_quantization:
        return
    if plan.device == "cpu":
        yield blocks("File-to-file quantization works only on a GPU.", "Plan without file2file_quantization.")
    if plan.model_export != "hf_format":
        yield blocks(f"File-to-file quantization writes only hf_format, not {plan.model_export}.", "Take hf_format.")
    calibrated = [scheme.name for scheme in case.used_schemes if any(spec.is_dynamic is False for spec in scheme.input)]
    needs = [
        *(f"{name} has activation scales that are calibrated" for name in calibrated),
        *([f"the KV cache scheme {plan.kv_cache_scheme} is calibrated"] if plan.kv_cache_scheme else []),
        *([f"{plan.algorithm} needs the model"] if plan.algorithm else []),
        *(["attention scales are calibrated"] if plan.attention_dtype else []),
    ]
    for need in needs:
        yield blocks(
            f"File-to-file quantization loads no model, and {need}.",
            "Take a weight-only scheme or one with dynamic activations, without the rest; or the standard flow.",
        )
    if plan.evaluation_intent != "none":
        yield warns(
            "Nothing is measured: file-to-file quantization ends before the evaluation.",
            "Skip the evaluation (evaluation_intent none).",
        )


@rule("evaluation_option_unused")
def evaluation_options_have_an_evaluation(case: Case) -> Iterator[Remark]:
    """Options of an evaluation that is skipped are left out of the command."""
    if case.plan.evaluation_intent != "none":
        return
    for name in ("evaluation_dataset", "num_eval_data", "tasks"):
        if getattr(case.plan, name) is not None:
            yield warns(f"{name} has no effect: nothing is evaluated.", "Ask for an evaluation, or leave it out.")


@rule("tasks_need_hub")
def tasks_can_be_fetched(case: Case) -> Iterator[Remark]:
    """Evaluation tasks bring their data from the Hub, as the last act of a run. Source: lm_eval."""
    if case.plan.tasks and case.plan.evaluation_intent != "none" and case.host.offline:
        yield blocks(
            f"The tasks {case.plan.tasks} read their data from the hub, which is off here.", "Plan without tasks."
        )


@rule("template_file_path")
def the_template_file_is_named_whole(case: Case) -> Iterator[Remark]:
    """A template is read where the runner keeps models or datasets, never beside whoever asks."""
    asked = case.plan.template_file
    if asked is not None and not asked.startswith("/"):
        yield blocks(f"The template file {asked} is not a whole path.", "Write its whole path on the runner's host.")


@rule("disk_too_small")
def the_output_fits_the_disk(case: Case) -> Iterator[Remark]:
    """A full disk leaves configuration and tokenizer without weights. Source: seen with amd-quark 0.13."""
    estimates, reserve = case.plan.estimates, case.host.disk_reserve_bytes
    needed, free = estimates.disk_bytes_needed, estimates.disk_bytes_free
    if needed is None or free is None or needed <= free - reserve:
        return
    kept = f", of which {_shown(reserve)} stay reserved" if reserve else ""
    yield blocks(
        f"The run needs about {_shown(needed)} of free disk where the output goes; {_shown(free)} are free{kept}.",
        "Free some space, or choose an output folder on another disk.",
    )


def _shown(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"
