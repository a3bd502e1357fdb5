"""The edit form: everything that can be changed, filled with what applies now."""

from __future__ import annotations

from collections.abc import Sequence
from typing import get_args

from bot.cards.form_data import NONE, FormField, Option
from bot.cards.form_data import Form as Form
from bot.cards.form_data import FormErrors as FormErrors
from bot.cards.form_filling import LONGEST, Now, named, select, toggle
from bot.cards.form_reading import read_form as read_form
from bot.cards.schemes import about, about_algorithm, algorithm_label, by_family, label
from bot.cards.texts import line, plain
from bot.conversation.request import Request
from bot.conversation.state import Analysing, ReviewingAnalysis, State, asked_at
from schemas.api import Capabilities
from schemas.artifacts.plan import (
    Calibration,
    DataType,
    EvaluationIntent,
    ModelExport,
    MultiGpu,
    QuantPlan,
)

__all__ = ["Form", "FormErrors", "edit_form", "read_form"]

_EVALUATIONS = {"none": "none", "smoke": "a quick perplexity check", "full": "perplexity on all of the text"}
_EXPORTS = {"hf_format": "HuggingFace SafeTensors", "onnx": "ONNX", "gguf": "GGUF"}
_ENTRY_POINTS = {
    "auto": "the runner chooses",
    "quantize_quark": "quantize_quark.py of the Quark checkout",
    "quark_cli": "quark-cli",
    "own": "the runner's own script",
    "site": "the script of this site",
}
_DATA_TYPES = {"auto": "as the model's files have it"}
_MULTI_GPU = {NONE: "one GPU", "auto": "several, filled one after the other", "balanced": "several, filled evenly"}


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
    analysis = getattr(state, "analysis", None)
    defaults = analysis.exclude_defaults if analysis is not None else None
    now = Now(state.request, None if at_start else plan, capabilities, defaults)
    fields = [
        *(_model(state.request) if at_start else ()),
        _scheme(now),
        *_algorithm(now),
        *_kv_cache(now),
        *_calibration(now),
        *_layers(now),
        *_results(now),
        *_run(now, _output(state), runners),
        *_memory(now),
        *_serving(now),
    ]
    title = "Change the request" if at_start or plan is None else "Change the plan"
    return Form(
        conversation=conversation_id, title=title, digest=plain(asked[1]) if asked else "", fields=tuple(fields)
    )


def _model(request: Request) -> tuple[FormField, ...]:
    return (
        FormField(
            name="model",
            label="Model",
            kind="text",
            section="Model",
            value=line(request.model, LONGEST),
            help="A folder on the runner, or the id of a model on the Hugging Face Hub.",
        ),
        FormField(
            name="revision",
            label="Revision",
            kind="text",
            section="Model",
            value=line(request.revision or "", LONGEST),
            help="A commit, tag or branch of a Hub model.",
        ),
    )


def _scheme(now: Now) -> FormField:
    offered = by_family(now.capabilities.catalogue) if now.capabilities else []
    options = [Option(value=one.name, label=label(one), group=group, about=about(one)) for group, one in offered]
    return select("global_scheme", "Scheme", "Scheme", now.word("global_scheme"), options)


def _algorithm(now: Now) -> list[FormField]:
    word = now.word("algorithm")
    chosen = tuple(line(one, LONGEST) for one in word.split(",") if one.strip())
    catalogue = now.capabilities.catalogue if now.capabilities else None
    offered = catalogue.algorithms if catalogue else []
    names = [name for name in dict.fromkeys([*offered, *chosen]) if name != NONE] if offered else []
    options = [
        Option(value=name, label=algorithm_label(name, catalogue), about=about_algorithm(name, catalogue))
        for name in names
    ]
    none = [Option(value=NONE, label=NONE)] if options else []
    return [
        FormField(
            name="algorithm",
            label="Algorithm",
            kind="list",
            section="Algorithm",
            value=chosen,
            options=(*none, *options),
            help="None is the fastest. Several are applied in the order in which they stand.",
        ),
        toggle(
            "write_algorithm_config",
            "Write a configuration where the engine has none for this family",
            "Algorithm",
            bool(now.value("write_algorithm_config")),
        ),
    ]


def _kv_cache(now: Now) -> list[FormField]:
    offered = now.capabilities.catalogue.kv_cache_schemes if now.capabilities else []
    options = [Option(value=name, label=line(name, 75)) for name in [NONE, *offered]] if offered else []
    fields = [select("kv_cache_scheme", "KV cache", "KV cache", now.word("kv_cache_scheme"), options)]
    if now.value("kv_cache_scheme"):
        fields += [
            FormField(
                name="min_kv_scale",
                label="Smallest KV scale",
                kind="number",
                section="KV cache",
                value=now.number("min_kv_scale"),
                least=0,
                whole=False,
                help="Keeps scales from becoming too small; usually left empty.",
            ),
            toggle(
                "kv_cache_post_rope",
                "Quantize the KV cache after RoPE",
                "KV cache",
                bool(now.value("kv_cache_post_rope")),
            ),
        ]
    schemes = now.capabilities.catalogue.attention_schemes if now.capabilities else []
    maths = [Option(value=name, label=line(name, 75)) for name in [NONE, *schemes]] if schemes else []
    known = now.word("attention_dtype")
    if maths or known not in ("", NONE):  # an engine that quantizes no attention has nothing to choose here
        fields.append(select("attention_dtype", "Attention math", "KV cache", known, maths))
    return fields


def _calibration(now: Now) -> list[FormField]:
    datasets = now.capabilities.datasets if now.capabilities else []
    names = [Option(value=name, label=line(name, 75)) for name in datasets]
    word = now.calibration("dataset")
    if now.capabilities is not None and not now.capabilities.hub and names:
        dataset = select("calibration_dataset", "Dataset", "Calibration", word, names)
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


def _layers(now: Now) -> list[FormField]:
    excluded = now.value("exclude_layers") or []
    overrides = now.value("layer_quant_config") or {}
    return [
        FormField(
            name="exclude_layers",
            label="Excluded layers",
            kind="list",
            section="Layers",
            value=tuple(line(pattern, LONGEST) for pattern in excluded),
            help="Full module names or patterns with *, one a line. They replace the engine's defaults.",
        ),
        FormField(
            name="layer_quant_config",
            label="Other schemes for some layers",
            kind="list",
            section="Layers",
            value=tuple(f"{line(pattern, LONGEST)} = {line(scheme, LONGEST)}" for pattern, scheme in overrides.items()),
            help="pattern = scheme, one a line, such as *down_proj = fp8.",
        ),
    ]


def _results(now: Now) -> list[FormField]:
    section = "Evaluation and export"
    evaluations = named(get_args(EvaluationIntent), _EVALUATIONS)
    exports = named(get_args(ModelExport), _EXPORTS)
    return [
        select("evaluation_intent", "Evaluation", section, now.word("evaluation_intent"), evaluations),
        FormField(
            name="evaluation_dataset",
            label="Evaluation dataset",
            kind="text",
            section=section,
            value=now.text("evaluation_dataset"),
            help="The name of a dataset, or of a text file in the runner's mirror; left empty, the usual one.",
        ),
        FormField(
            name="num_eval_data",
            label="Evaluation samples",
            kind="number",
            section=section,
            value=now.number("num_eval_data"),
            least=1,
            most=1_000_000,
            help="Left empty, as many as the evaluation takes.",
        ),
        FormField(
            name="tasks",
            label="Evaluation tasks",
            kind="text",
            section=section,
            value=now.text("tasks"),
            help="Tasks of lm-eval, joined by commas, such as mmlu,gsm8k; usually left empty.",
        ),
        select("model_export", "Export", section, now.word("model_export"), exports),
    ]


def _run(now: Now, output_dir: str, runners: Sequence[str]) -> list[FormField]:
    usable = ["auto", *(now.capabilities.entry_points if now.capabilities else _ENTRY_POINTS)]
    entry_points = named(dict.fromkeys(usable), _ENTRY_POINTS)
    names = [Option(value=name, label=line(name, 75)) for name in runners]
    fields = [
        select("entry_point", "Entry point", "Run", now.word("entry_point"), entry_points),
        FormField(
            name="output_dir",
            label="Output folder",
            kind="text",
            section="Run",
            value=line(output_dir, LONGEST),
            help="A folder on the runner that is empty or does not exist.",
        ),
        select("runner", "Runner", "Run", line(now.request.runner, LONGEST), names),
    ]
    if now.capabilities is not None and now.capabilities.remote_code:
        trusts = bool(now.value("trust_remote_code"))
        fields.append(toggle("trust_remote_code", "Run code that the model brings along", "Run", trusts))
    return fields


def _memory(now: Now) -> list[FormField]:
    section = "Loading the model"
    several = named([NONE, *get_args(MultiGpu)], _MULTI_GPU)
    return [
        select("data_type", "Data type", section, now.word("data_type"), named(get_args(DataType), _DATA_TYPES)),
        select("multi_gpu", "GPUs", section, now.word("multi_gpu"), several),
        toggle(
            "file2file_quantization",
            "Read and write the weights file by file, for models larger than memory",
            section,
            bool(now.value("file2file_quantization")),
        ),
    ]


def _serving(now: Now) -> list[FormField]:
    return [
        FormField(
            name="tensor_parallel",
            label="Tensor parallel",
            kind="number",
            section="Serving",
            value=now.number("tensor_parallel"),
            least=1,
            most=1024,
            help="GPUs among which the server will split each layer; it changes no command, only what is checked.",
        )
    ]


def _output(state: State) -> str:
    """Where the output goes: what the command says, what was asked for, or what the intake found free."""
    manifest, analysis = getattr(state, "manifest", None), getattr(state, "analysis", None)
    if manifest is not None:
        return str(manifest.output_dir)
    return state.request.output_dir or (analysis.proposed_output if analysis is not None else "")
