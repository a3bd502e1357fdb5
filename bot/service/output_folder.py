"""Where a quantized model shall go when nobody named a folder."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

from bot.conversation.state import Preparing
from schemas.api import Capabilities

_TRIES = 50


def candidates(state: Preparing, offer: Capabilities | None) -> Iterator[str]:
    """The folder that was named, alone; otherwise names beside the one that the runner proposed, until one is free.

    What it proposed lies in the first of its output folders of today, in case an administrator has moved them.
    """
    if state.request.output_dir is not None:
        yield state.request.output_dir
        return
    parent = PurePosixPath(state.analysis.proposed_output).parent
    roots = [PurePosixPath(root) for root in offer.output_roots] if offer is not None else []
    if roots and not any(parent.is_relative_to(root) for root in roots):
        parent = roots[0]
    name = f"{_model_name(state.request.model)}-{_plain(state.plan.scheme)}"
    for number in range(1, _TRIES + 1):
        yield str(parent / (name if number == 1 else f"{name}-{number}"))


def output_taken(holder: int, folder: str) -> tuple[str, str]:
    """What a person is told when another thread holds the folder: the sentence, and what to do."""
    return f"Thread {holder} writes to {folder} already.", "Name another output folder."


def _model_name(model: str) -> str:
    return _plain(PurePosixPath(model.rstrip("/")).name.partition("@")[0]) or "model"


def _plain(text: str) -> str:
    return re.sub(r"[^A-Za-z0-9._-]+", "-", text).strip("-.")[:100]
