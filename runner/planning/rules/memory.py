"""Whether the run's memory is there, on its GPUs and in main memory.

What is there and what is free stand in the plan's estimates: they are readings of the moment at which it was made.
"""

from __future__ import annotations

from collections.abc import Iterator

from runner.planning import memory
from runner.planning.rules.registry import Case, Remark, blocks, rule, warns


@rule("gpu_memory_short")
def the_gpu_has_room(case: Case) -> Iterator[Remark]:
    """A model whose weights alone are larger than the GPU is never loaded; anything else may just fit.

    With several GPUs the loader leaves in main memory what they have no room for, which is slow and no failure.
    Source: model loader of amd-quark 0.13.
    """
    estimates = case.plan.estimates
    needed, there, free = estimates.gpu_memory_bytes, estimates.gpu_memory_bytes_there, estimates.gpu_memory_bytes_free
    if needed is None or there is None:
        return
    weights = memory.loaded_bytes(case.plan, case.analysis) if estimates.flow == "standard" else 0
    if weights > there and not memory.uses_several(case.plan):
        message = f"The weights alone take {_shown(weights)}, and the GPU has {_shown(there)}."
        yield blocks(message, _smallest_change(case, weights, there))
    elif memory.uses_several(case.plan) and weights > there + (estimates.host_memory_bytes_there or weights):
        message = f"The weights alone take {_shown(weights)}: more than the GPUs' {_shown(there)} and main memory."
        yield blocks(message, _smallest_change(case, weights, there))
    elif needed > there:
        message = f"The run takes about {_shown(needed)} of GPU memory at its peak, and {_shown(there)} are there."
        yield warns(message, _smallest_change(case, weights, there))
    elif free is not None and needed > free:
        yield warns(
            f"The run takes about {_shown(needed)} of GPU memory at its peak; {_shown(free)} of {_shown(there)} were "
            "free when this plan was made.",
            "See what else uses the GPU, and let it end first.",
        )


@rule("host_memory_short")
def main_memory_has_room(case: Case) -> Iterator[Remark]:
    """On a CPU the whole model lies in main memory, and its quantized weights beside it: the kernel ends such a run."""
    estimates = case.plan.estimates
    needed, there = estimates.host_memory_bytes, estimates.host_memory_bytes_there
    free = estimates.host_memory_bytes_free
    if needed is None or there is None:
        return
    on_cpu = case.plan.device == "cpu" and estimates.flow == "standard"
    weights = memory.loaded_bytes(case.plan, case.analysis) if on_cpu else 0
    less = _less_work(case) or "Take a host with more memory."
    if weights > there:
        message = f"The weights alone take {_shown(weights)}, and this host has {_shown(there)} of main memory."
        yield blocks(message, "Take a host with more memory, or one with a GPU.")
    elif needed > there:
        yield warns(
            f"The run takes about {_shown(needed)} of main memory at its peak, and {_shown(there)} are there.", less
        )
    elif free is not None and needed > free:
        yield warns(
            f"The run takes about {_shown(needed)} of main memory at its peak; {_shown(free)} were available when this "
            "plan was made.",
            "See what else uses the host's memory, and let it end first.",
        )


def _smallest_change(case: Case, weights: int, there: int) -> str:
    """What helps and changes least, of what this plan and this host allow."""
    if memory.GPU_WEIGHTS * weights <= there and (less := _less_work(case)):
        return less
    if not memory.uses_several(case.plan) and case.host.gpus_per_run > 1:
        return f"Use the {case.host.gpus_per_run} GPUs of a run together (multi_gpu)."
    can = "quantize_quark" in case.host.entry_points and not case.plan.file2file_quantization
    if can and memory.needs_no_samples(case.plan, case.analysis, case.catalogue):
        return "Quantize file by file (file2file_quantization), which holds one file of the model at a time."
    return "Take a GPU with more memory, or several together (multi_gpu; gpus.per_run in runner.yaml)."


def _less_work(case: Case) -> str:
    """How to calibrate with less memory; empty where that would not help."""
    if case.plan.algorithms:
        return "Calibrate on fewer or shorter samples (num_calib_data, seq_len)."
    if case.plan.calibration.batch_size > 1:
        return "Calibrate in smaller batches (batch_size 1)."
    return (
        "" if memory.needs_no_samples(case.plan, case.analysis, case.catalogue) else "Take shorter samples (seq_len)."
    )


def _shown(count: int) -> str:
    return f"{count / 1e9:.1f} GB" if count >= 1e8 else f"{count / 1e6:.1f} MB"
