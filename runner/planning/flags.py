"""What each program that quantizes can be told: one table of flags, for the commands and for the rules alike.

The first rows are the published mapping, in its order; a command gets its flags in the order of the table.

    model path            --model_dir
    output dir            --output_dir
    global_scheme         --quant_scheme
    kv_cache_scheme       --kv_cache_dtype, only if non-null
    layer_quant_config    one --layer_quant_scheme PATTERN SCHEME per entry
    algorithm             --quant_algo, only if non-null
    exclude_layers        --exclude_layers, only when a person changed them: it replaces the engine's defaults
    num_calib_data        --num_calib_data
    seq_len               --seq_len
    export format         --model_export
    data type             --data_type
    device                --device

Sources: AMD Quark's published workflow; the parsers of quantize_quark.py and quark-cli torch-llm-ptq, amd-quark 0.13.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Literal

from runner.host.entry_points import EntryPointName
from runner.planning.layers import in_order
from schemas.artifacts.analysis import ModelAnalysis
from schemas.artifacts.plan import QuantPlan

Words = list[list[str]]
"""The values of each occurrence of a flag: [] leaves it out, [[]] is a switch, [[a, b], [c, d]] are two pairs."""

QQ: EntryPointName = "quantize_quark"
CLI: EntryPointName = "quark_cli"
OWN: EntryPointName = "own"
SITE: EntryPointName = "site"
PROGRAMS: tuple[EntryPointName, ...] = (QQ, CLI, OWN, SITE)

_SMOKE, _FULL = {"windows": "8", "tokens": "512"}, {"windows": "0", "tokens": "2048"}
"""How much our script evaluates. 0: the whole text, in windows as the engine's programs read it."""


def least_evaluated(plan: QuantPlan) -> int:
    """Tokens of text that our script needs at least for its evaluation: one window where it reads all there is."""
    if plan.evaluation_intent == "none":
        return 0
    wanted = _SMOKE if plan.evaluation_intent == "smoke" else _FULL
    return max(1, int(wanted["windows"])) * int(wanted["tokens"])


@dataclass(frozen=True)
class Job:
    """A plan with every path as the command has it.

    `model` is a folder, or the Hub id of a model that the run downloads at the commit `revision`. `dataset` is a name
    or the path of a text file; `algorithm_files` are configuration files by algorithm.
    """

    plan: QuantPlan
    model: str
    output_dir: str
    dataset: str
    revision: str | None = None
    algorithm_files: Mapping[str, str] = field(default_factory=dict)
    template_file: str | None = None


@dataclass(frozen=True)
class Flag:
    """One flag: what of the plan it says, which programs have it, and its values for a job.

    `implied` are programs that do the same without being told. `unsaid` are the values that every program without the
    flag takes by itself; `left_out` are the defaults of programs that are not told them, as in the published mapping.
    `takes` narrows the values of a program. `beyond` says why the flag stands in a command although the published
    mapping has none; it is empty for the flags of that mapping.
    """

    name: str
    says: str
    programs: tuple[EntryPointName, ...]
    words: Callable[[Job], Words]
    implied: tuple[EntryPointName, ...] = ()
    unsaid: Words | None = None
    left_out: Mapping[EntryPointName, str] = field(default_factory=dict)
    takes: Mapping[EntryPointName, frozenset[str]] = field(default_factory=dict)
    beyond: str = ""

    def given(self, program: EntryPointName, job: Job) -> Words:
        """What a program is told with this flag; nothing where it has none."""
        if program not in self.programs:
            return []
        words = self.words(job)
        return [] if words == [[self.left_out.get(program)]] else words


@dataclass(frozen=True)
class Gap:
    """What a plan asks and a program cannot be told: the value that it does not take; None where it has no flag."""

    flag: Flag
    value: str | None = None
    taken: tuple[str, ...] = ()

    @property
    def others(self) -> list[EntryPointName]:
        """The programs that can be told it."""
        flag, value = self.flag, self.value
        able = [name for name in PROGRAMS if name in (*flag.programs, *flag.implied)]
        return [name for name in able if value is None or value in flag.takes.get(name, {value})]


def asked(plan: QuantPlan, analysis: ModelAnalysis) -> Job:
    """A job that asks what the plan does, for looking at; its paths are not those of a command."""
    facts = analysis.model
    return Job(
        plan=plan,
        model=facts.model_path,
        output_dir="",
        dataset=plan.calibration.dataset,
        revision=None if facts.downloaded else facts.revision,
        algorithm_files={config.algorithm: f"{config.algorithm}.json" for config in plan.algorithm_configs},
        template_file=plan.template_file,
    )


def arguments(program: EntryPointName, job: Job) -> list[str]:
    """The flags of a program with their values, in the table's order."""
    return [
        argument
        for flag in FLAGS
        for words in flag.given(program, job)
        for argument in (flag.name, *words)
    ]  # fmt: skip


def gaps(program: EntryPointName, job: Job) -> Iterator[Gap]:
    """What the plan of a job asks and the program cannot be told."""
    for flag in FLAGS:
        words = flag.words(job)
        if not words or words == flag.unsaid or program in flag.implied:
            continue
        if program not in flag.programs:
            yield Gap(flag)
        elif taken := flag.takes.get(program):
            refused = (value for values in words for value in values if value not in taken)
            yield from (Gap(flag, value, tuple(sorted(taken))) for value in refused)


def _one(value: str | None) -> Words:
    return [] if value is None else [[value]]


def _switch(on: bool) -> Words:
    return [[]] if on else []


def _pairs(pairs: list[tuple[str, str]]) -> Words:
    return [list(pair) for pair in pairs]


def _kv(job: Job, words: Words) -> Words:
    """Options of the KV cache do nothing without its scheme, so that they are left out with it."""
    return words if job.plan.kv_cache_scheme is not None else []


def _scale(plan: QuantPlan) -> str | None:
    return None if plan.min_kv_scale is None else repr(plan.min_kv_scale)


def _evaluated(job: Job, value: object) -> Words:
    """Options of the evaluation do nothing without one."""
    return [] if value is None or job.plan.evaluation_intent == "none" else [[str(value)]]


def _own_evaluation(job: Job, what: Literal["windows", "tokens"]) -> Words:
    intent = job.plan.evaluation_intent
    return [] if intent == "none" else [[(_SMOKE if intent == "smoke" else _FULL)[what]]]


_WITH_CODE = "Loading a model may run code of its repository"
_EVALUATES = "The published command always evaluates as much as the program does by itself"

FLAGS: tuple[Flag, ...] = (
    Flag("--model_dir", "the model", PROGRAMS, lambda job: [[job.model]]),
    Flag("--output_dir", "the output folder", PROGRAMS, lambda job: [[job.output_dir]]),
    Flag("--quant_scheme", "global_scheme", PROGRAMS, lambda job: [[job.plan.global_scheme]]),
    Flag("--kv_cache_dtype", "kv_cache_scheme", PROGRAMS, lambda job: _one(job.plan.kv_cache_scheme)),
    Flag(
        "--layer_quant_scheme",
        "layer_quant_config",
        PROGRAMS,
        lambda job: _pairs(in_order(job.plan.layer_quant_config)),
    ),
    Flag("--quant_algo", "algorithm", PROGRAMS, lambda job: _one(job.plan.algorithm)),
    Flag(
        "--exclude_layers",
        "exclude_layers",
        PROGRAMS,
        # The list ends at the next flag, which always follows.
        lambda job: [list(job.plan.exclude_layers)] if job.plan.exclude_layers_changed else [],
    ),
    Flag("--num_calib_data", "num_calib_data", PROGRAMS, lambda job: [[str(job.plan.calibration.num_calib_data)]]),
    Flag("--seq_len", "seq_len", PROGRAMS, lambda job: [[str(job.plan.calibration.seq_len)]]),
    Flag(
        "--model_export",
        "model_export",
        (QQ, OWN),
        lambda job: [[job.plan.model_export]],
        unsaid=[["hf_format"]],
        takes={OWN: frozenset({"hf_format"})},
    ),
    Flag("--data_type", "data_type", (QQ, OWN), lambda job: [[job.plan.data_type]], unsaid=[["auto"]]),
    Flag("--device", "device", PROGRAMS, lambda job: [[job.plan.device]]),
    Flag(
        "--dataset",
        "calibration_dataset",
        PROGRAMS,
        lambda job: [[job.dataset]],
        left_out={QQ: "pileval", CLI: "pileval"},
        beyond="The published mapping has no flag for the calibration data, which would then be the program's default.",
    ),
    Flag(
        "--batch_size",
        "batch_size",
        PROGRAMS,
        lambda job: [[str(job.plan.calibration.batch_size)]],
        left_out={QQ: "1", CLI: "1"},
        beyond="The published mapping has no flag for the batch size, which would then be the program's default.",
    ),
    Flag(
        "--min_kv_scale",
        "min_kv_scale",
        (QQ, OWN),
        lambda job: _kv(job, _one(_scale(job.plan))),
        beyond="Asked for: the smallest scale of the KV cache.",
    ),
    Flag(
        "--kv_cache_post_rope",
        "kv_cache_post_rope",
        (QQ, OWN),
        lambda job: _kv(job, _switch(job.plan.kv_cache_post_rope)),
        beyond="Asked for: keys are quantized after the rotary embedding.",
    ),
    Flag(
        "--attention_dtype",
        "attention_dtype",
        (QQ,),
        lambda job: _one(job.plan.attention_dtype),
        takes={QQ: frozenset({"fp8"})},
        beyond="Asked for: attention is quantized too.",
    ),
    Flag(
        "--quant_algo_config_file",
        "a configuration file of an algorithm",
        (QQ, OWN),
        lambda job: _pairs(list(job.algorithm_files.items())),
        beyond="The engine has no built-in configuration of this algorithm for this family.",
    ),
    Flag(
        "--multi_gpu",
        "multi_gpu",
        (QQ, OWN),
        lambda job: _one(job.plan.multi_gpu),
        beyond="Asked for: the model is spread over several GPUs.",
    ),
    Flag(
        "--multi_device",
        "multi_device",
        (QQ, CLI),
        lambda job: _switch(job.plan.multi_device),
        beyond="Asked for: what no GPU has room for stays in main memory.",
    ),
    Flag(
        "--file2file_quantization",
        "file2file_quantization",
        (QQ,),
        lambda job: _switch(job.plan.file2file_quantization),
        beyond="Asked for: one weight file after another is quantized, without loading the model.",
    ),
    Flag(
        "--template_file",
        "template_file",
        (CLI,),
        lambda job: _one(job.template_file),
        beyond="Asked for: a template of the site.",
    ),
    Flag(
        "--revision",
        "the revision of a model that is still on the Hub",
        (QQ, OWN),
        lambda job: _one(job.revision),
        beyond="Pins the commit that was analysed; without it the run would take whatever the Hub has by then.",
    ),
    Flag(
        "--evaluation_dataset",
        "evaluation_dataset",
        (QQ, CLI),
        lambda job: _evaluated(job, job.plan.evaluation_dataset),
        takes={
            QQ: frozenset({"wikitext", "wikitext_gpt_oss_120b", "wikitext_gpt_oss_20b"}),
            CLI: frozenset({"wikitext", "wikitext_gpt_oss_120b"}),
        },
        beyond="Asked for: what perplexity is measured on.",
    ),
    Flag(
        "--num_eval_data",
        "num_eval_data",
        (QQ,),
        lambda job: _evaluated(job, job.plan.num_eval_data),
        beyond="Asked for: how many samples of the evaluation data are read.",
    ),
    Flag(
        "--tasks",
        "tasks",
        (QQ,),
        lambda job: _evaluated(job, job.plan.tasks),
        beyond="Asked for: tasks that the result is evaluated on.",
    ),
    Flag(
        "--trust_remote_code",
        "trust_remote_code",
        (OWN,),
        lambda job: _switch(job.plan.trust_remote_code),
        implied=(QQ, CLI),
        beyond=f"{_WITH_CODE}; this program does so only when it is told.",
    ),
    Flag(
        "--no_trust_remote_code",
        "trust_remote_code",
        (QQ, CLI, OWN),
        lambda job: _switch(not job.plan.trust_remote_code),
        unsaid=[[]],
        beyond=f"{_WITH_CODE}, which nobody approved: the published command trusts it by default.",
    ),
    Flag(
        "--skip_evaluation",
        "evaluation_intent",
        PROGRAMS,
        lambda job: _switch(job.plan.evaluation_intent == "none"),
        beyond="The plan measures nothing afterwards; the published command always does.",
    ),
    Flag(
        "--eval_windows",
        "evaluation_intent",
        (OWN,),
        lambda job: _own_evaluation(job, "windows"),
        implied=(QQ, CLI, SITE),
        beyond=f"{_EVALUATES}; our script is told how much.",
    ),
    Flag(
        "--eval_seq_len",
        "evaluation_intent",
        (OWN,),
        lambda job: _own_evaluation(job, "tokens"),
        implied=(QQ, CLI, SITE),
        beyond=f"{_EVALUATES}; our script is told the tokens of a window.",
    ),
)
"""Every flag, in the order of a command: the published mapping, then what goes beyond it."""
