"""Experts that a file keeps in one tensor, taken apart as the engine does before it quantizes."""

from __future__ import annotations

import re
from collections.abc import Iterator

from runner.intake.config import ModelConfig
from runner.intake.headers import Tensor
from runner.intake.linear import Linear

_NO_WEIGHT = re.compile(r"(?:bias|scale|scales|scale_inv|blocks|zeros|zero_point|packed|shape)$")
_GATE_AND_UP = {"gate_up_proj", "gate_up", "w13", "input_linear"}
_DOWN = {"down_proj", "w2", "output_linear"}
_STACKED = re.compile(r"(.+\.experts\.mlp)\.(w1|v1|w2)")


def is_fused(tensor: Tensor, config: ModelConfig) -> bool:
    """Whether a tensor holds one matrix for each expert: experts x rows x columns."""
    if len(tensor.shape) != 3 or 0 in tensor.shape or _NO_WEIGHT.search(tensor.name):
        return False
    return ".experts." in tensor.name or tensor.shape[0] == config.experts


def is_stacked(tensor: Tensor, config: ModelConfig) -> bool:
    """Whether a tensor holds the experts' matrices below each other, as DBRX does."""
    experts = config.experts
    return (
        len(tensor.shape) == 2
        and bool(experts)
        and tensor.shape[0] % (experts or 1) == 0
        and 0 not in tensor.shape
        and _STACKED.fullmatch(tensor.name) is not None
    )


def unfused(tensor: Tensor, config: ModelConfig, *, with_bias: bool) -> Iterator[Linear]:
    """The linear layers of a fused tensor.

    The inputs of gate and up, and the outputs of down, are as many as the model's hidden size: families differ in which
    axis that is. gate and up become two layers, except where they have a bias (as in gpt_oss).
    """
    module, leaf = tensor.name.removesuffix(".weight").rsplit(".", 1)
    experts, rows, columns = tensor.shape
    if leaf in _DOWN:
        outputs, inputs = (columns, rows) if rows != config.hidden_size == columns else (rows, columns)
    else:
        outputs, inputs = (columns, rows) if columns != config.hidden_size == rows else (rows, columns)
    apart = leaf in _GATE_AND_UP and not with_bias and outputs % 2 == 0
    leaves, outputs = (("gate_proj", "up_proj"), outputs // 2) if apart else ((leaf,), outputs)
    for expert in range(experts):
        for name in leaves:
            yield Linear(f"{module}.{expert}.{name}", inputs, outputs, tensor.dtype, provisional=True)


def unstacked(tensor: Tensor, experts: int) -> Iterator[Linear]:
    """The linear layers of a stacked tensor; `w2` is kept transposed."""
    found = _STACKED.fullmatch(tensor.name)
    if found is None:
        return
    width, hidden = tensor.shape[0] // experts, tensor.shape[1]
    inputs, outputs = (width, hidden) if found.group(2) == "w2" else (hidden, width)
    for expert in range(experts):
        yield Linear(f"{found.group(1)}.{expert}.{found.group(2)}", inputs, outputs, tensor.dtype, provisional=True)
