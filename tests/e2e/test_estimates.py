"""What a run really took is told beside what was predicted, and tells later plans how long theirs take."""

from __future__ import annotations

from schemas.runs import RunState
from tests.e2e.host import Host


def test_what_a_run_took_is_measured_and_later_plans_know_it(host: Host) -> None:
    first = host.manifest("first")
    nothing = first.inputs.quant_plan.estimates
    assert (nothing.runs_of_this_kind, nothing.seconds_least, nothing.seconds_most) == (0, None, None)
    assert nothing.host_memory_bytes_there is not None
    assert nothing.host_memory_bytes_free is not None
    run = host.submit(first)
    report = host.wait_for(run.id, RunState.SUCCEEDED).report
    assert report is not None
    measured = report.measured
    assert measured is not None
    assert measured.seconds is not None
    assert measured.host_memory_bytes is not None
    assert 0 < measured.seconds < 60
    assert 1 << 20 < measured.host_memory_bytes < 1 << 30
    assert (measured.gpu_memory_bytes, measured.gpu_arch) == (None, None)

    known = host.manifest("second").inputs.quant_plan.estimates
    assert (known.runs_of_this_kind, known.seconds_least, known.seconds_most) == (1, measured.seconds, measured.seconds)
    assert host.manifest("third", global_scheme="int8").inputs.quant_plan.estimates.runs_of_this_kind == 0

    host.kill()
    host.start()
    again = host.manifest("fourth")
    assert again.inputs.quant_plan.estimates.seconds_least == measured.seconds
    # A plan keeps what it said when it was made: the run is still what was approved when another has finished.
    host.wait_for(host.submit(host.manifest("fifth"), "fifth").id, RunState.SUCCEEDED)
    assert (
        host.wait_for(host.submit(again, "fourth").id, RunState.SUCCEEDED, RunState.FAILED).state is RunState.SUCCEEDED
    )
    assert host.manifest("sixth").inputs.quant_plan.estimates.runs_of_this_kind == 3
