"""Counters in Prometheus' text format."""

from __future__ import annotations

import resource

from runner.runs.table import Counts


def metrics_text(counts: Counts, uptime_seconds: float) -> str:
    """Runs by state, the daemon's uptime and its largest memory."""
    peak_bytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    lines = [
        "# HELP ptq_runner_runs Runs by state.",
        "# TYPE ptq_runner_runs gauge",
        *(f'ptq_runner_runs{{state="{state}"}} {number}' for state, number in sorted(counts.by_state.items())),
        "# HELP ptq_runner_uptime_seconds Seconds since the daemon's start.",
        "# TYPE ptq_runner_uptime_seconds gauge",
        f"ptq_runner_uptime_seconds {uptime_seconds:.0f}",
        "# HELP ptq_runner_peak_memory_bytes Largest resident memory of the daemon.",
        "# TYPE ptq_runner_peak_memory_bytes gauge",
        f"ptq_runner_peak_memory_bytes {peak_bytes}",
    ]
    return "\n".join(lines) + "\n"
