"""What supervisors and people who watch the bot read."""

from __future__ import annotations

from bisect import bisect_left
from typing import Final

_BOUNDS: Final = (0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5)


class Metrics:
    """Counters of one process."""

    def __init__(self) -> None:
        self._buckets = [0] * (len(_BOUNDS) + 1)
        self._seconds = 0.0
        self.not_recorded = 0
        self.refused = 0
        self.connections = 0
        self.in_work = 0

    def acknowledged(self, seconds: float) -> None:
        """A delivery was answered after so many seconds."""
        self._buckets[bisect_left(_BOUNDS, seconds)] += 1
        self._seconds += seconds

    def text(self) -> str:
        """In the form that Prometheus reads."""
        lines, so_far = ["# TYPE ptq_slack_ack_seconds histogram"], 0
        for bound, count in zip((*map(str, _BOUNDS), "+Inf"), self._buckets, strict=True):
            so_far += count
            lines.append(f'ptq_slack_ack_seconds_bucket{{le="{bound}"}} {so_far}')
        lines += [f"ptq_slack_ack_seconds_sum {self._seconds:.6f}", f"ptq_slack_ack_seconds_count {so_far}"]
        for name, kind, value in (
            ("ptq_slack_not_recorded_total", "counter", self.not_recorded),
            ("ptq_slack_refused_total", "counter", self.refused),
            ("ptq_slack_connections_total", "counter", self.connections),
            ("ptq_slack_in_work", "gauge", self.in_work),
        ):
            lines += [f"# TYPE {name} {kind}", f"{name} {value}"]
        return "\n".join(lines) + "\n"
