"""A request, an analysis and the catalogue to a quantization plan with reasons and findings."""

from runner.planning.host_view import HostView as HostView
from runner.planning.host_view import PastRun as PastRun
from runner.planning.plan import make_plan as make_plan
from runner.planning.rules import find as find_findings
from runner.planning.values import check_plan as check_plan

__all__ = ["HostView", "PastRun", "check_plan", "find_findings", "make_plan"]
