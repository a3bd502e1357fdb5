"""The environment variables of a run: few, named, and never the daemon's own."""

from __future__ import annotations

from collections.abc import Mapping

# What a program needs of its host. Everything else stays behind: the daemon's variables hold secrets, and a variable
# that nobody approved could change what the approved command does.
_PASSED_ON = (
    "PATH",
    "HOME",
    "USER",
    "LANG",
    "LC_ALL",
    "TMPDIR",
    "LD_LIBRARY_PATH",
    "XDG_CACHE_HOME",
    "HF_HOME",
    "ROCM_PATH",
    "CUDA_HOME",
    "OPENBLAS_CORETYPE",
)


def run_environment(
    daemon: Mapping[str, str], fixed: Mapping[str, str], secrets: list[str], mask: Mapping[str, str]
) -> dict[str, str]:
    """What the run gets: the host's basics, the manifest's fixed variables, its named secrets, and the GPU mask."""
    basics = {name: daemon[name] for name in _PASSED_ON if name in daemon}
    named = {name: daemon[name] for name in secrets if name in daemon}
    return {**basics, **named, **fixed, **mask}
