"""The variables that a run always gets, and the names of the secrets that it may see."""

from __future__ import annotations

import os

from runner.settings import RunnerSettings
from schemas.artifacts.manifest import EntryPoint

_ALWAYS = {
    "PYTHONUNBUFFERED": "1",  # stdout into a file is else written in blocks, and progress would come late
    "PYTHONDONTWRITEBYTECODE": "1",  # nothing is written into a Quark checkout or beside a kept script
    "PYTHONUTF8": "1",
    "TOKENIZERS_PARALLELISM": "false",  # forking after tokenizing else warns or hangs
    "HF_HUB_DISABLE_TELEMETRY": "1",
}
_HUB = ("HF_ENDPOINT", "HF_HUB_CACHE")
_OFFLINE = {"HF_HUB_OFFLINE": "1", "TRANSFORMERS_OFFLINE": "1", "HF_DATASETS_OFFLINE": "1"}


def fixed_variables(settings: RunnerSettings, entry: EntryPoint) -> dict[str, str]:
    """Variables that belong to the approved command."""
    variables = dict(_ALWAYS)
    if settings.models.hub:
        # Where the run downloads from and into has to be what was analysed and what is looked for later.
        variables |= {name: value for name in _HUB if (value := os.environ.get(name, ""))}
    else:
        variables |= _OFFLINE
    if entry.name == "quantize_quark":
        variables["QUARK_PROFILING"] = "1"  # it then writes quark_profile.yaml: phases, durations, memory
    return dict(sorted(variables.items()))


def secret_names(settings: RunnerSettings) -> list[str]:
    """Names of secret variables that the run may see: a Hub token, where the Hub may be asked at all."""
    return ["HF_TOKEN"] if settings.models.hub else []
