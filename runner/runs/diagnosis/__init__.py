"""Why a command failed, what to do next, and which change of the plan may help.

Rules are data (`rules`), by kind of failure. `output` finds the lines that decide, `examining` asks the rules,
`endings` are the ends that the runner itself knows, `logs` reads a file of any length, `offers` makes plans of help.
"""

from runner.runs.diagnosis.endings import could_not_start as could_not_start
from runner.runs.diagnosis.endings import ended_by_runner as ended_by_runner
from runner.runs.diagnosis.endings import likely_host_memory as likely_host_memory
from runner.runs.diagnosis.endings import time_limit as time_limit
from runner.runs.diagnosis.examining import Diagnosis as Diagnosis
from runner.runs.diagnosis.examining import diagnose as diagnose
from runner.runs.diagnosis.examining import examine as examine
from runner.runs.diagnosis.examining import quoted as quoted
from runner.runs.diagnosis.logs import diagnose_file as diagnose_file
from runner.runs.diagnosis.output import last_exception as last_exception

__all__ = [
    "Diagnosis",
    "could_not_start",
    "diagnose",
    "diagnose_file",
    "ended_by_runner",
    "examine",
    "last_exception",
    "likely_host_memory",
    "quoted",
    "time_limit",
]
