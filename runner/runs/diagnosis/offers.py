"""The smallest changes of a plan that may help after a failure. Nothing changes by itself: each is approved anew.

An offer is made only where it changes something and where the rules of planning do not stop the changed plan; what a
failure of memory needs less of is estimated, and a change that needs as much is not offered.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from typing import Any, Final

from pydantic import JsonValue

from runner.planning import HostView, bits, datasets, memory, schemes
from runner.planning.plan import derived
from runner.runs.diagnosis.rule import Help, Memory
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.plan import QuantPlan
from schemas.artifacts.report import Offer
from schemas.catalog import Catalogue, Scheme

AT_MOST: Final = 3
_SCHEMES_TRIED: Final = 8  # plans made anew for one kind of help, the nearest first
_SHORTEST: Final = 32  # tokens of a sample, below which calibration says nothing
_NEAR_BITS: Final = 0.05
_TYPICAL = (4096, 4096)
_SUITED: Final = {True: ("smoothquant", "rotation", "autosmoothquant"), False: ("awq", "gptq", "rotation")}
"""Algorithms by whether activations are quantized too, those first that change least of the model."""


@dataclass(frozen=True)
class Failed:
    """The failed run's plan, and what a changed one is judged by."""

    plan: QuantPlan
    analysis: ModelAnalysis
    catalogue: Catalogue
    host: HostView
    short_of: Memory | None = None
    """The memory of which there was too little, where that was the failure."""

    @classmethod
    def by(
        cls, manifest: RunManifest, catalogue: Catalogue, host: HostView | None, short_of: Memory | None = None
    ) -> Failed:
        """What failed. Without a view of the host, what the plan itself says of it has to do."""
        plan = manifest.inputs.quant_plan
        return cls(plan, manifest.inputs.model_analysis, catalogue, host or _host_of(manifest), short_of)

    @cached_property
    def as_planned(self) -> QuantPlan:
        """The plan itself with findings and estimates of now."""
        return self.planned({})

    def planned(self, changes: dict[str, Any]) -> QuantPlan:
        """The plan with changes, and all that follows from them."""
        return derived(self.plan.model_copy(update=changes), self.analysis, self.catalogue, self.host)

    def may_help(self, changes: dict[str, Any]) -> bool:
        """Whether a change changes anything, is not stopped, and needs less of what was short."""
        if all(getattr(self.plan, name) == value for name, value in changes.items()):
            return False
        plan = self.planned(changes)
        # What stopped the plan as it is, such as a host that changed since, is not the change's fault.
        known = {(finding.code, finding.message) for finding in self.as_planned.blocked_by}
        if any((finding.code, finding.message) not in known for finding in plan.blocked_by):
            return False
        return self.short_of is None or self._needs_less(plan, self.short_of)

    def _needs_less(self, plan: QuantPlan, what: Memory) -> bool:
        """Whether less memory is needed at the peak, as far as it can be estimated; spread over more GPUs is less."""
        if memory.uses_several(plan) and not memory.uses_several(self.plan):
            return True
        now, then = self.as_planned.estimates, plan.estimates
        if what == "gpu":
            before, after = now.gpu_memory_bytes, then.gpu_memory_bytes
        else:
            before, after = now.host_memory_bytes, then.host_memory_bytes
        return before is None or after is None or after < before


def offers(helps: Iterable[Help], failed: Failed) -> list[Offer]:
    """At most three offers, the smallest change first."""
    made: list[Offer] = []
    for wanted in dict.fromkeys(helps):
        for candidate in _CANDIDATES[wanted](failed):
            if len(made) == AT_MOST:
                return made
            if failed.may_help(candidate.changes(failed.plan)):
                made.append(Offer(label=candidate.label, reason=candidate.reason, choices=candidate.choices))
                break
    return made


@dataclass(frozen=True)
class _Candidate:
    """An offer before it is known whether it helps."""

    label: str
    reason: str
    choices: dict[str, JsonValue]

    def changes(self, plan: QuantPlan) -> dict[str, Any]:
        """The same as fields of a plan: calibration is laid over the plan's own, field by field."""
        changes: dict[str, Any] = dict(self.choices)
        if isinstance(over := changes.get("calibration"), dict):
            changes["calibration"] = plan.calibration.model_copy(update=over)
        return changes


def _smaller_batch(failed: Failed) -> Iterator[_Candidate]:
    now = failed.plan.calibration.batch_size
    if now > 1:
        reason = f"One sample at a time needs less memory than {now:,}, and changes nothing of the result."
        yield _Candidate("Plan with batch size 1", reason, {"calibration": {"batch_size": 1}})


def _fewer_samples(failed: Failed) -> Iterator[_Candidate]:
    now = failed.plan.calibration.num_calib_data
    if now > 1 and _calibrates(failed):
        half = now // 2
        named = f"{half:,} samples" if half > 1 else "1 sample"
        reason = f"Calibrating on {named} instead of {now:,} takes less memory, time and text."
        yield _Candidate(f"Plan with {named}", reason, {"calibration": {"num_calib_data": half}})


def _shorter_samples(failed: Failed) -> Iterator[_Candidate]:
    now = failed.plan.calibration.seq_len
    if now >= 2 * _SHORTEST and _calibrates(failed):
        half = now // 2
        reason = f"Samples of {half:,} tokens instead of {now:,} take less memory, time and text."
        yield _Candidate(f"Plan with samples of {half:,} tokens", reason, {"calibration": {"seq_len": half}})


def _calibrates(failed: Failed) -> bool:
    """Whether samples do anything: a weight-only scheme without an algorithm reads them for nothing."""
    return not memory.needs_no_samples(failed.plan, failed.analysis, failed.catalogue)


def _several_gpus(failed: Failed) -> Iterator[_Candidate]:
    plan, count = failed.plan, failed.host.gpus_per_run
    if plan.device != "cuda" or count < 2 or memory.uses_several(plan):
        return
    reason = f"The model is spread over the {count} GPUs that a run gets here."
    label = f"Plan with {count} GPUs together"
    yield _Candidate(label, reason, {"multi_gpu": "auto"})
    yield from _by_published(label, reason, {"multi_gpu": "auto"}, failed)


def _file_to_file(failed: Failed) -> Iterator[_Candidate]:
    plan = failed.plan
    if plan.device != "cuda" or plan.file2file_quantization:
        return
    choices: dict[str, JsonValue] = {"file2file_quantization": True}
    reason = "Only one file of weights is in memory at a time."
    if plan.evaluation_intent != "none":
        choices["evaluation_intent"] = "none"
        reason += " Nothing is evaluated then."
    if plan.kv_cache_scheme:
        choices |= _without_kv_cache(plan)
        reason += " The KV cache stays as the model has it."
    choices |= {name: None for name in ("multi_gpu", "tasks", "evaluation_dataset") if getattr(plan, name) is not None}
    yield _Candidate("Plan file by file", reason, choices)
    yield from _by_published("Plan file by file", reason, choices, failed)


def _by_published(label: str, reason: str, choices: dict[str, JsonValue], failed: Failed) -> Iterator[_Candidate]:
    """The same by the published script, where another program is planned and that one is here."""
    if failed.plan.entry_point != "quantize_quark" and "quantize_quark" in failed.host.entry_points:
        told = f"{reason} quantize_quark.py can do it."
        yield _Candidate(label, told, {**choices, "entry_point": "quantize_quark"})


def _no_evaluation(failed: Failed) -> Iterator[_Candidate]:
    if failed.plan.evaluation_intent == "none":
        return
    unused = ("tasks", "evaluation_dataset", "num_eval_data")
    choices: dict[str, JsonValue] = {name: None for name in unused if getattr(failed.plan, name) is not None}
    reason = "The model is quantized and exported without being measured; evaluate it elsewhere before it is used."
    yield _Candidate("Plan without evaluation", reason, {"evaluation_intent": "none", **choices})


def _own_program(failed: Failed) -> Iterator[_Candidate]:
    if failed.plan.entry_point != "own":
        reason = f"Our own script uses the engine's library directly and needs nothing of {failed.plan.entry_point}."
        yield _Candidate("Plan with our own script", reason, {"entry_point": "own"})


def _other_scheme(failed: Failed) -> Iterator[_Candidate]:
    """A scheme near in bits that the engine can do what it could not: the nearest first."""
    now = _bits(failed.plan.global_scheme, failed)
    ranked = sorted(
        (abs(width - (now or 8)), scheme.name)
        for scheme in failed.catalogue.schemes.values()
        if _usable(scheme, failed) and (width := _bits(scheme.name, failed)) is not None
    )
    for _, name in ranked[:_SCHEMES_TRIED]:
        reason = f"{name} is near in size{_in_bits(name, failed)}, and the engine can do all of it here."
        yield _Candidate(f"Plan with {name}", reason, {"global_scheme": name})


def _finer_scheme(failed: Failed) -> Iterator[_Candidate]:
    """A scheme that loses less: more bits; or as many as floats, where integers had them."""
    now, current = _bits(failed.plan.global_scheme, failed), failed.catalogue.schemes.get(failed.plan.global_scheme)
    if now is None or current is None:
        return
    ranked: list[tuple[float, str]] = []
    for scheme in failed.catalogue.schemes.values():
        width = _bits(scheme.name, failed)
        if width is None or not _usable(scheme, failed):
            continue
        if width > now + _NEAR_BITS or (width >= now - _NEAR_BITS and _integers(current) and not _integers(scheme)):
            ranked.append((width, scheme.name))
    for _, name in sorted(ranked)[:_SCHEMES_TRIED]:
        reason = f"{name} keeps more of each weight{_in_bits(name, failed)} than {failed.plan.global_scheme}."
        yield _Candidate(f"Plan with {name}", reason, {"global_scheme": name})


def _usable(scheme: Scheme, failed: Failed) -> bool:
    """Whether the engine can write such a model, and compute with it where this run computes."""
    if scheme.name == failed.plan.global_scheme or schemes.cannot_be_exported(scheme) or schemes.forward_fails(scheme):
        return False
    return failed.plan.device != "cpu" or not schemes.forward_needs_gpu(scheme)


def _bits(name: str, failed: Failed) -> float | None:
    """Bits of one weight of the model's most common layer under a scheme."""
    scheme = failed.catalogue.schemes.get(name)
    if scheme is None:
        return None
    groups = failed.analysis.quantization_targets.groups
    most = max(groups, key=lambda group: group.count * group.in_features * group.out_features, default=None)
    rows, columns = (most.out_features, most.in_features) if most else _TYPICAL
    return bits.bits_per_weight(scheme, rows, columns)


def _in_bits(name: str, failed: Failed) -> str:
    width = _bits(name, failed)
    return f" ({width:.3g} bits)" if width is not None else ""


def _integers(scheme: Scheme) -> bool:
    spec = schemes.stored(scheme)
    return spec is not None and schemes.is_integer(spec)


def _algorithm(failed: Failed) -> Iterator[_Candidate]:
    plan, catalogue = failed.plan, failed.catalogue
    name = failed.analysis.compatibility.template or plan.model.model_type
    template = catalogue.templates.get(name)
    scheme = catalogue.schemes.get(plan.global_scheme)
    if template is None or scheme is None or plan.algorithm:
        return
    for algorithm in _SUITED[bool(scheme.input)]:
        if algorithm in template.algorithms:
            reason = f"The engine has a configuration of {algorithm} for this family; it makes {scheme.name} lose less."
            yield _Candidate(f"Plan with {algorithm}", reason, {"algorithm": algorithm})


def _no_algorithm(failed: Failed) -> Iterator[_Candidate]:
    if failed.plan.algorithm:
        reason = f"{failed.plan.global_scheme} also works without {failed.plan.algorithm}, and loses more."
        yield _Candidate("Plan without an algorithm", reason, {"algorithm": None})


def _write_config(failed: Failed) -> Iterator[_Candidate]:
    if failed.plan.algorithm and not failed.plan.write_algorithm_config:
        reason = f"A configuration of {failed.plan.algorithm} is written after the engine's own of a near family."
        yield _Candidate("Plan with a written configuration", reason, {"write_algorithm_config": True})


def _no_kv_cache(failed: Failed) -> Iterator[_Candidate]:
    if failed.plan.kv_cache_scheme:
        reason = "The KV cache stays as the model has it."
        yield _Candidate("Plan without a KV cache scheme", reason, _without_kv_cache(failed.plan))


def _without_kv_cache(plan: QuantPlan) -> dict[str, JsonValue]:
    choices: dict[str, JsonValue] = {"kv_cache_scheme": None}
    choices |= {"min_kv_scale": None} if plan.min_kv_scale is not None else {}
    return choices | ({"kv_cache_post_rope": False} if plan.kv_cache_post_rope else {})


def _native_code(failed: Failed) -> Iterator[_Candidate]:
    if failed.plan.trust_remote_code:
        reason = "transformers then loads the model by its own class, where it has one."
        yield _Candidate("Plan without the model's own code", reason, {"trust_remote_code": False})


_CANDIDATES: Final[dict[Help, Callable[[Failed], Iterator[_Candidate]]]] = {
    Help.SMALLER_BATCH: _smaller_batch,
    Help.FEWER_SAMPLES: _fewer_samples,
    Help.SHORTER_SAMPLES: _shorter_samples,
    Help.SEVERAL_GPUS: _several_gpus,
    Help.FILE_TO_FILE: _file_to_file,
    Help.NO_EVALUATION: _no_evaluation,
    Help.OWN_PROGRAM: _own_program,
    Help.OTHER_SCHEME: _other_scheme,
    Help.FINER_SCHEME: _finer_scheme,
    Help.ALGORITHM: _algorithm,
    Help.NO_ALGORITHM: _no_algorithm,
    Help.WRITE_CONFIG: _write_config,
    Help.NO_KV_CACHE: _no_kv_cache,
    Help.NATIVE_CODE: _native_code,
}


def _host_of(manifest: RunManifest) -> HostView:
    """The host as the plan knew it: enough to see what a change is stopped by, and nothing more is claimed."""
    plan, entry = manifest.inputs.quant_plan, manifest.entry_point
    there = plan.estimates.gpu_memory_bytes_there
    return HostView(
        accelerator="cpu" if plan.device == "cpu" else "unknown",
        entry_points={entry.name: entry.path, "own": ""},
        datasets=[plan.calibration.dataset, *([datasets.EVALUATION] if plan.evaluation_intent != "none" else [])],
        disk_free_bytes=plan.estimates.disk_bytes_free,
        gpu_memory=(there,) if there else (),
        host_memory_bytes=plan.estimates.host_memory_bytes_there,
    )
