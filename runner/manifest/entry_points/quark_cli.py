"""`quark-cli torch-llm-ptq` of amd-quark[cli]. Made by its documentation; not tried by this project.

It writes only Hugging Face safetensors and has no flags for output format, data type and options of the KV cache. It
leaves its working directory, which is why every path is absolute. Source: quark-cli of amd-quark 0.13.
"""

from __future__ import annotations

from runner.planning import flags
from runner.planning.flags import Job

SUBCOMMAND = "torch-llm-ptq"


def arguments(job: Job) -> list[str]:
    """The plan as arguments of quark-cli."""
    return [SUBCOMMAND, *flags.arguments("quark_cli", job)]
