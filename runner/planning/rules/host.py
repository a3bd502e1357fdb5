"""What the host and the entry point can do."""

from __future__ import annotations

from collections.abc import Iterator

from runner.planning import placement
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


@rule("export_not_supported")
def the_entry_point_writes_the_format(case: Case) -> Iterator[Remark]:
    """Only quantize_quark.py has a flag for ONNX and GGUF. Source: the three entry points of amd-quark 0.13."""
    if case.plan.model_export != "hf_format" and case.plan.entry_point not in ("quantize_quark", "auto"):
        yield blocks(
            f"{case.plan.entry_point} writes only hf_format, not {case.plan.model_export}.",
            "Take quantize_quark (it needs a Quark checkout), or hf_format.",
        )


@rule("cli_limits")
def quark_cli_has_the_flags(case: Case) -> Iterator[Remark]:
    """quark-cli has no flags for KV cache options and fails on a CPU case.host, blaming GPU memory.

    Source: quark-cli of amd-quark 0.13; with a GPU it was not tried here.
    """
    if case.plan.entry_point != "quark_cli":
        return
    if case.plan.device == "cpu":
        yield blocks("quark-cli does not work without a GPU.", "Take the entry point own.")
    if case.host.offline:
        yield blocks("quark-cli reads datasets only from the hub, which is off here.", "Take quantize_quark or own.")
    for name, wanted in (
        ("min_kv_scale", case.plan.min_kv_scale),
        ("kv_cache_post_rope", case.plan.kv_cache_post_rope),
    ):
        if wanted is not None and wanted is not False:
            yield blocks(f"quark-cli has no flag for {name}.", "Take quantize_quark or own.")
    yield warns("Commands of quark-cli are made by its documentation and were not tried by this project.")


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
