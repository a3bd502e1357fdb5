"""The edit form: everything that can be changed, filled with what applies now."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any, get_args

from bot.cards.form_data import NONE, FormField, Option
from bot.cards.form_data import Form as Form
from bot.cards.form_data import FormErrors as FormErrors
from bot.cards.form_reading import read_form as read_form
from bot.cards.schemes import by_family, label
from bot.cards.texts import line, plain
from bot.conversation.request import Request
from bot.conversation.state import Analysing, ReviewingAnalysis, State, asked_at
from schemas.api import Capabilities
from schemas.artifacts.plan import Calibration, EvaluationIntent, ModelExport, PlanChoices, QuantPlan

__all__ = ["Form", "FormErrors", "edit_form", "read_form"]

_LONGEST = 4096
_RECOMMENDED = Option(value="", label="as the runner recommends")
_EVALUATIONS = {"none": "none", "smoke": "a quick perplexity check", "full": "perplexity on all of the text"}
_EXPORTS = {"hf_format": "HuggingFace SafeTensors", "onnx": "ONNX", "gguf": "GGUF"}
_ENTRY_POINTS = {
    "auto": "the runner chooses",
    "quantize_quark": "quantize_quark.py of the Quark checkout",
    "quark_cli": "quark-cli",
    "own": "the runner's own script",
}


def edit_form(
    conversation_id: int,
    state: State,
    plan: QuantPlan | None,
    capabilities: Capabilities | None,
    runners: Sequence[str] = (),
) -> Form:
    """What can be changed in a state. At checkpoint 1 that includes the model.

    `plan` is the plan that is shown or was made, and fills the form; without it, what was asked for does.
    `capabilities` are what the runner offers, where they are known; `runners` the names of all configured ones.
    """
    at_start = isinstance(state, Analysing | ReviewingAnalysis) or getattr(state, "analysis", None) is None
    asked = asked_at(state)
    now = _Now(state.request, None if at_start else plan, capabilities)
    fields = [
        *(_model(state.request) if at_start else ()),
        _scheme(now),
        _algorithm(now),
        *_kv_cache(now),
        *_calibration(now),
        *_layers(now),
        *_results(now),
        *_run(now, _output(state), runners),
    ]
    title = "Change the request" if at_start or plan is None else "Change the plan"
    return Form(
        conversation=conversation_id, title=title, digest=plain(asked[1]) if asked else "", fields=tuple(fields)
    )


class _Now:
    """What applies now: the plan's decision, else what was asked for, else nothing."""

    def __init__(self, request: Request, plan: QuantPlan | None, capabilities: Capabilities | None) -> None:
        self.request = request
        self.plan = plan
        self.capabilities = capabilities
        self._choices = request.plan_choices
        self._source: QuantPlan | PlanChoices = plan if plan is not None else self._choices

    def value(self, name: str) -> Any:
        """The value of a field of the plan; None also where nothing is decided."""
        return getattr(self._source, name)

    def decided(self, name: str) -> bool:
        """Whether there is a decision, be it for none."""
        return self.plan is not None or self._choices.asks(name)

    def word(self, name: str) -> str:
        """The value as one word: empty where nothing is decided, "none" where none of it is wanted."""
        if not self.decided(name):
            return ""
        found = self.value(name)
        return NONE if found is None else line(found, _LONGEST)

    def calibration(self, name: str) -> str:
        """One value of the calibration."""
        found = getattr(self.value("calibration"), name, None)
        return "" if found is None else line(found, _LONGEST)


def _model(request: Request) -> tuple[FormField, ...]:
    return (
        FormField(
            name="model",
            label="Model",
            kind="text",
            section="Model",
            value=line(request.model, _LONGEST),
            help="A folder on the runner, or the id of a model on the Hugging Face Hub.",
        ),
        FormField(
            name="revision",
            label="Revision",
            kind="text",
            section="Model",
            value=line(request.revision or "", _LONGEST),
            help="A commit, tag or branch of a Hub model.",
        ),
    )


def _scheme(now: _Now) -> FormField:
    offered = by_family(now.capabilities.catalogue) if now.capabilities else []
    options = [Option(value=one.name, label=label(one), group=group) for group, one in offered]
    return _select("global_scheme", "Scheme", "Scheme", now.word("global_scheme"), options)


def _algorithm(now: _Now) -> FormField:
    word = now.word("algorithm")
    chosen = tuple(line(one, _LONGEST) for one in word.split(",") if one.strip())
    offered = now.capabilities.catalogue.algorithms if now.capabilities else []
    names = dict.fromkeys([NONE, *offered, *chosen]) if offered else {}
    return FormField(
        name="algorithm",
        label="Algorithm",
        kind="list",
        section="Algorithm",
        value=chosen,
        options=tuple(Option(value=name, label=line(name, 75)) for name in names),
        help="None is the fastest. Several are applied in the order in which they stand.",
    )


def _kv_cache(now: _Now) -> list[FormField]:
    offered = now.capabilities.catalogue.kv_cache_schemes if now.capabilities else []
    options = [Option(value=name, label=line(name, 75)) for name in [NONE, *offered]] if offered else []
    fields = [_select("kv_cache_scheme", "KV cache", "KV cache", now.word("kv_cache_scheme"), options)]
    if now.value("kv_cache_scheme"):
        scale = now.value("min_kv_scale")
        fields += [
            FormField(
                name="min_kv_scale",
                label="Smallest KV scale",
                kind="number",
                section="KV cache",
                value="" if scale is None else f"{scale:g}",
                least=0,
                whole=False,
                help="Keeps scales from becoming too small; usually left empty.",
            ),
            _toggle(
                "kv_cache_post_rope",
                "Quantize the KV cache after RoPE",
                "KV cache",
                bool(now.value("kv_cache_post_rope")),
            ),
        ]
    return fields


def _calibration(now: _Now) -> list[FormField]:
    datasets = now.capabilities.datasets if now.capabilities else []
    names = [Option(value=name, label=line(name, 75)) for name in datasets]
    word = now.calibration("dataset")
    if now.capabilities is not None and not now.capabilities.hub and names:
        dataset = _select("calibration_dataset", "Dataset", "Calibration", word, names)
    else:
        known = f" This runner has: {', '.join(line(name, 60) for name in datasets[:10])}." if datasets else ""
        told = f"The name of a dataset, or of a text file in the runner's mirror.{known}"
        dataset = FormField(
            name="calibration_dataset", label="Dataset", kind="text", section="Calibration", value=word, help=told
        )
    numbers = (
        ("num_calib_data", "Samples", 1_000_000),
        ("seq_len", "Tokens of a sample", 1_048_576),
        ("batch_size", "Batch size", 65_536),
    )
    usual = Calibration()
    return [
        dataset,
        *(
            FormField(
                name=name,
                label=words,
                kind="number",
                section="Calibration",
                value=now.calibration(name),
                least=1,
                most=most,
                help=f"Usually {getattr(usual, name):,}.",
            )
            for name, words, most in numbers
        ),
    ]


def _layers(now: _Now) -> list[FormField]:
    excluded = now.value("exclude_layers") or []
    overrides = now.value("layer_quant_config") or {}
    return [
        FormField(
            name="exclude_layers",
            label="Excluded layers",
            kind="list",
            section="Layers",
            value=tuple(line(pattern, _LONGEST) for pattern in excluded),
            help="Full module names or patterns with *, one a line. They replace the engine's defaults.",
        ),
        FormField(
            name="layer_quant_config",
            label="Other schemes for some layers",
            kind="list",
            section="Layers",
            value=tuple(
                f"{line(pattern, _LONGEST)} = {line(scheme, _LONGEST)}" for pattern, scheme in overrides.items()
            ),
            help="pattern = scheme, one a line, such as *down_proj = fp8.",
        ),
    ]


def _results(now: _Now) -> list[FormField]:
    section = "Evaluation and export"
    evaluations = _named(get_args(EvaluationIntent), _EVALUATIONS)
    exports = _named(get_args(ModelExport), _EXPORTS)
    return [
        _select("evaluation_intent", "Evaluation", section, now.word("evaluation_intent"), evaluations),
        _select("model_export", "Export", section, now.word("model_export"), exports),
    ]


def _run(now: _Now, output_dir: str, runners: Sequence[str]) -> list[FormField]:
    usable = ["auto", *(now.capabilities.entry_points if now.capabilities else _ENTRY_POINTS)]
    entry_points = _named(dict.fromkeys(usable), _ENTRY_POINTS)
    names = [Option(value=name, label=line(name, 75)) for name in runners]
    fields = [
        _select("entry_point", "Entry point", "Run", now.word("entry_point"), entry_points),
        FormField(
            name="output_dir",
            label="Output folder",
            kind="text",
            section="Run",
            value=line(output_dir, _LONGEST),
            help="A folder on the runner that is empty or does not exist.",
        ),
        _select("runner", "Runner", "Run", line(now.request.runner, _LONGEST), names),
    ]
    if now.capabilities is not None and now.capabilities.remote_code:
        trusts = bool(now.value("trust_remote_code"))
        fields.append(_toggle("trust_remote_code", "Run code that the model brings along", "Run", trusts))
    return fields


def _output(state: State) -> str:
    """Where the output goes: what the command says, what was asked for, or what the intake found free."""
    manifest, analysis = getattr(state, "manifest", None), getattr(state, "analysis", None)
    if manifest is not None:
        return str(manifest.output_dir)
    return state.request.output_dir or (analysis.proposed_output if analysis is not None else "")


def _named(values: Iterable[str], names: dict[str, str]) -> list[Option]:
    return [Option(value=value, label=line(names.get(value, value), 75)) for value in values]


def _select(name: str, words: str, section: str, value: str, options: Sequence[Option]) -> FormField:
    """A choice of one; a line to type where it is not known what there is to choose."""
    offered = list(options)
    if offered and not value:
        offered.insert(0, _RECOMMENDED)
    elif offered and value not in {option.value for option in offered}:
        offered.append(Option(value=value, label=line(f"{value} (not offered here)", 75)))
    kind: Any = "select" if offered else "text"
    return FormField(name=name, label=words, kind=kind, section=section, value=value, options=tuple(offered))


def _toggle(name: str, words: str, section: str, value: bool) -> FormField:
    return FormField(name=name, label=words, kind="toggle", section=section, value="true" if value else "false")
