"""Where a quantized model goes, before the command says it exactly."""

from __future__ import annotations

from pathlib import PurePosixPath

from bot.conversation.request import Request
from bot.conversation.state import AnalysisRevision


def output_in_words(request: Request, analysis: AnalysisRevision) -> str:
    """The folder that was named; else where the runner will choose a fresh one."""
    if request.output_dir is not None:
        return request.output_dir
    if not analysis.proposed_output:
        return "a fresh one; the command names it"
    return f"a fresh one in {PurePosixPath(analysis.proposed_output).parent}; the command names it"
