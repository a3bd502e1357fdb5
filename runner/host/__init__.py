"""Facts of this machine: accelerators, Python and torch, Quark, paths, disk."""

from runner.host.accelerators import hardware
from runner.host.entry_points import entry_point, entry_points
from runner.host.facts import environment_answer
from runner.host.interpreter import Interpreter
from runner.host.interpreter_facts import InterpreterFacts
from runner.host.model_location import ModelLocation, locate_model
from runner.host.output_location import OutputLocation, check_disk, check_output, examine_output
from runner.host.workspace import workspace_context

__all__ = [
    "Interpreter",
    "InterpreterFacts",
    "ModelLocation",
    "OutputLocation",
    "check_disk",
    "check_output",
    "entry_point",
    "entry_points",
    "environment_answer",
    "examine_output",
    "hardware",
    "locate_model",
    "workspace_context",
]
