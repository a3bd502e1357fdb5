"""Quantize a language model with AMD Quark and compare it with the original: what the other entry points do not cover.

Runs in the quantization interpreter, which need not have this project installed; code of a model's repository runs only
with --trust_remote_code. Events are JSON lines on stdout, between whatever the engine prints:

    {"ptq": "phase", "phase": P}                    P as in PHASES: phases may be skipped, never repeated
    {"ptq": "progress", "phase": P, "done": n, "total": m}
    {"ptq": "perplexity", "of": "original"|"quantized", "value": x or null, "dataset": "...", "tokens": n read}
    {"ptq": "output", "dir": "...", "bytes": n}     the checkpoint is complete
    {"ptq": "memory", "gpu_peak_bytes": n}          the most that torch held on each GPU, added up; also of a failure
    {"ptq": "error", "phase": P, "type": "...", "message": "..."}
    {"ptq": "done"}                                 the last line of a success

Exit status: 0; 1 after an error event (a sentence on stderr for bad input, else a traceback); 2 for a wrong command.

The quantized model is evaluated after its export, which merges scales and packs layers: only then is it what was
written. Seen with amd-quark 0.13: before, perplexity differs with an fp8 KV cache, and mxfp4 fails on a CPU.
"""

from __future__ import annotations

import argparse
import contextlib
import difflib
import glob
import itertools
import json
import math
import os
import sys
import tempfile
import threading
import time
import traceback
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

PHASES = [
    "preparing", "loading_model", "checking_compatibility", "evaluating_original", "loading_dataset",
    "replacing_modules", "optimizing", "calibrating", "freezing", "exporting", "evaluating", "done",
]  # fmt: skip
TEXT_FILES = (".txt", ".jsonl")  # a dataset that ends so is a file of the person's own and not a name


class BadInput(Exception):
    """What was asked for cannot be done. Its text is one sentence for the person; nobody needs a traceback."""


class Events:
    """Writes the events, each as a whole line, and keeps the current phase."""

    def __init__(self) -> None:
        self.phase = PHASES[0]
        self._progress_at = 0.0

    def write(self, kind: str, **fields: Any) -> None:
        # The line break in front ends whatever line a progress bar has left open in the same log.
        sys.stdout.write("\n" + json.dumps({"ptq": kind, **fields}, allow_nan=False) + "\n")
        sys.stdout.flush()

    def enter(self, phase: str) -> None:
        """Begin a phase. Phases only go forward."""
        if PHASES.index(phase) < PHASES.index(self.phase):
            raise RuntimeError(f"The phase {phase} cannot come after {self.phase}.")
        self.phase, self._progress_at = phase, 0.0
        self.write("phase", phase=phase)

    def progress(self, done: int, total: int) -> None:
        """Say how far the phase is: at its end, and otherwise at most once a second."""
        now = time.monotonic()
        if done >= total or now - self._progress_at >= 1.0:
            self._progress_at = now
            self.write("progress", phase=self.phase, done=done, total=total)


def main(arguments: Sequence[str] | None = None) -> int:
    """Quantize as the command line says and return the exit status."""
    options = parse(arguments)
    events = Events()
    try:
        run(options, events)
    except Exception as problem:  # reported, logged and turned into the exit status: nothing is swallowed
        if isinstance(problem, BadInput):
            print(f"\n{in_words(problem)}", file=sys.stderr, flush=True)
        else:
            traceback.print_exc()
        events.write("error", phase=events.phase, type=type(problem).__name__, message=in_words(problem))
        return 1
    events.write("done")
    return 0


def in_words(problem: Exception) -> str:
    """The message of an error in one line; for one without a message, the statement that raised it."""
    if text := " ".join(str(problem).split()):
        return text[:2000]  # the traceback on stderr has all of it
    last = traceback.extract_tb(problem.__traceback__)[-1]
    return f"{type(problem).__name__} without a message at {Path(last.filename).name}:{last.lineno}: {last.line}"


def parse(arguments: Sequence[str] | None) -> argparse.Namespace:
    """Read the command line; a wrong one ends the program with status 2."""
    parser = argparse.ArgumentParser(description="Quantize a language model with AMD Quark.", allow_abbrev=False)
    add = parser.add_argument
    add("--model_dir", required=True, help="Folder of the model, or its id on the Hub.")
    add("--revision", help="Commit, tag or branch of a Hub id, which is downloaded first.")
    add("--output_dir", required=True, type=Path, help="Folder for the result: new or empty.")
    add("--quant_scheme", required=True)
    add("--layer_quant_scheme", action="append", nargs=2, default=[], metavar=("PATTERN", "SCHEME"))
    add("--kv_cache_dtype", metavar="SCHEME")
    add("--min_kv_scale", type=float, default=0.0)
    add("--kv_cache_post_rope", action="store_true", help="Quantize keys after the rotary embedding.")
    add("--quant_algo", type=lambda text: text.split(","), default=[], metavar="ALGO,ALGO")
    add("--quant_algo_config_file", action="append", nargs=2, default=[], metavar=("ALGO", "FILE"))
    add("--exclude_layers", nargs="*", metavar="PATTERN", help="In place of the family's defaults; empty: none.")
    add("--dataset", default="pileval", help="A name that Quark knows, or a .txt or .jsonl file (column text).")
    add("--num_calib_data", type=int, default=512, help="Samples.")
    add("--seq_len", type=int, default=512, help="Tokens of a sample.")
    add("--batch_size", type=int, default=1)
    add("--data_type", default="auto", choices=["auto", "float16", "bfloat16", "float32"])
    add("--model_export", default="hf_format", choices=["hf_format"])
    add("--device", default="cuda", choices=["cuda", "cpu"], help="A GPU is called cuda on ROCm too.")
    add("--multi_gpu", nargs="?", const="auto", choices=["auto", "balanced"])
    add("--skip_evaluation", action="store_true")
    add("--eval_windows", type=int, default=8, help="Windows to evaluate; 0: the whole text.")
    add("--eval_seq_len", type=int, default=512, help="Tokens of a window.")
    trust = parser.add_mutually_exclusive_group()
    trust.add_argument("--trust_remote_code", action="store_true", help="Run code of the model's repository.")
    trust.add_argument("--no_trust_remote_code", action="store_false", dest="trust_remote_code")
    parser.set_defaults(trust_remote_code=False)
    options = parser.parse_args(arguments)
    if reason := contradiction(options):
        parser.error(reason)
    return options


def contradiction(options: argparse.Namespace) -> str | None:
    """Why the options make no sense together; None when they do."""
    least = {"eval_windows": 0, "num_calib_data": 1, "seq_len": 1, "batch_size": 1, "eval_seq_len": 2}
    if low := next((flag for flag in least if getattr(options, flag) < least[flag]), None):
        return f"--{low} must be at least {least[low]}."
    if not 0 <= options.min_kv_scale < math.inf:
        return "--min_kv_scale must be a number from 0 on."
    files = [name for name, _ in options.quant_algo_config_file]
    for names in (options.quant_algo, files, [pattern for pattern, _ in options.layer_quant_scheme]):
        if twice := next((name for name in names if names.count(name) > 1), None):
            return f"{twice} is named twice."
    if unused := next((name for name in files if name not in options.quant_algo), None):
        return f"--quant_algo_config_file configures {unused}, which --quant_algo does not name."
    if options.multi_gpu and options.device == "cpu":
        return "--multi_gpu needs --device cuda."
    if not options.kv_cache_dtype and (options.kv_cache_post_rope or options.min_kv_scale):
        return "--kv_cache_post_rope and --min_kv_scale do nothing without --kv_cache_dtype."
    return None


def run(options: argparse.Namespace, events: Events) -> None:
    """Everything but the command line."""
    events.enter("preparing")
    check_files(options)
    import torch

    if options.device == "cuda" and not torch.cuda.is_available():
        raise BadInput(f"torch {torch.__version__} of this interpreter finds no GPU: use --device cpu, or a GPU build.")
    if not Path(options.model_dir).is_dir():
        options.model_dir = download(options, events)
        if problem := incomplete(Path(options.model_dir)):
            raise BadInput(f"The model cannot be read: {problem}")
    torch.manual_seed(0)  # the same command gives the same checkpoint
    native = torch.backends.mkldnn.is_available() and torch.ops.mkldnn._is_mkldnn_bf16_supported()
    with contextlib.nullcontext() if options.device == "cuda" or native else products_in_float32(torch):
        try:
            work(options, events)
        finally:
            if options.device == "cuda":
                peaks = map(torch.cuda.max_memory_allocated, range(torch.cuda.device_count()))
                events.write("memory", gpu_peak_bytes=sum(peaks))


def work(options: argparse.Namespace, events: Events) -> None:
    """The run itself. What can fail for want of something comes before whatever is slow."""
    config, tokenizer = quantization_config(options), load_tokenizer(options, options.model_dir)
    data = load_data(options, tokenizer)
    from accelerate.utils import send_to_device  # type: ignore[import-untyped]
    from quark.torch.utils.llm import check_compatibility_before_quantization, get_model
    from torch.utils.data import DataLoader

    events.enter("loading_model")
    trust = options.trust_remote_code
    model, _ = get_model(
        options.model_dir, options.data_type, options.device, options.multi_gpu, trust_remote_code=trust
    )
    events.enter("checking_compatibility")
    check_compatibility_before_quantization(model, raise_on_error=False)  # known troubles become warnings in the log
    if data.windows:
        events.enter("evaluating_original")
        evaluate("original", model, data, events)
    events.enter("loading_dataset")
    batches = DataLoader(send_to_device(data.batches, model.device), batch_size=None)
    model = quantize(model, config, batches, events)
    events.enter("exporting")
    export(model, tokenizer, options, events)
    if data.windows:
        events.enter("evaluating")
        evaluate("quantized", model, data, events)
    events.enter("done")


def products_in_float32(torch: Any) -> Any:
    """A context in which matrix products of bfloat16 tensors are computed in float32 and rounded once.

    For processors without bfloat16 arithmetic, where torch emulates it: three to four times slower (torch 2.13, AVX2).
    Sums are kept in float32 either way, so that results differ by rounding alone.
    """
    tensor, half = torch.Tensor, torch.bfloat16
    products = {torch.nn.functional.linear, torch.matmul, torch.bmm, tensor.matmul, tensor.__matmul__, tensor.bmm}

    def wide(value: Any) -> Any:
        return value.float() if isinstance(value, tensor) and value.dtype is half else value

    class Products(torch.overrides.TorchFunctionMode):  # type: ignore[misc]
        def __torch_function__(self, function: Any, _: Any, given: Any = (), named: Any = None) -> Any:
            if function not in products or getattr(given[0] if given else None, "dtype", None) is not half:
                return function(*given, **(named or {}))
            named = {name: wide(value) for name, value in (named or {}).items()}
            return function(*map(wide, given), **named).to(half)

    return Products()


def check_files(options: argparse.Namespace) -> None:
    """Refuse what can be seen to fail without loading anything, and make the output folder."""
    source, output = Path(options.model_dir), options.output_dir
    if source.is_dir():
        if options.revision:
            raise BadInput(f"{source} is a folder and has no revision: leave --revision out.")
        if problem := incomplete(source):
            raise BadInput(f"The model cannot be read: {problem}")
        if output.resolve() == source.resolve() or source.resolve() in output.resolve().parents:
            raise BadInput(f"The output folder {output} lies in the model's own folder: choose another one.")
    elif source.is_absolute() or len(source.parts) != 2:
        raise BadInput(f"There is no model folder {source}.")
    if options.dataset.endswith(TEXT_FILES) and not Path(options.dataset).is_file():
        raise BadInput(f"There is no text file {options.dataset} to calibrate on.")
    for name, file in options.quant_algo_config_file:
        read_json(Path(file), f"The configuration of {name}")
    try:
        output.mkdir(parents=True, exist_ok=True)
        if written(output):
            raise BadInput(f"The output folder {output} is not empty: choose a new one.")
        tempfile.TemporaryFile(dir=output).close()
    except OSError as problem:
        raise BadInput(f"The output folder {output} cannot be written to: {problem.strerror}.") from None


def download(options: argparse.Namespace, events: Events) -> str:
    """The folder of a Hub model in the cache: one whole commit, its weights as the safetensors that loading takes."""
    from httpx import HTTPError
    from huggingface_hub import HfApi, constants, hf_hub_download, snapshot_download

    model, index, code = options.model_dir, "model.safetensors.index.json", [".py"] * options.trust_remote_code
    try:
        info = HfApi().model_info(model, revision=options.revision, files_metadata=True)
        files = {file.rfilename: file for file in info.siblings or []}
        weights = [name for name in files if name.endswith(".safetensors") and "/" not in name]
        if "model.safetensors" in files:
            weights = ["model.safetensors"]
        elif index in files:
            path = Path(hf_hub_download(model, index, revision=info.sha))
            weights = sorted(set(read_json(path, "The index of the weights").get("weight_map", {}).values()))
        ends = (".json", ".model", ".txt", ".jinja", ".tiktoken", *code)
        small = [name for name in files if name.endswith(ends if "/" not in name else (".jinja", *code))]
        wanted = {name: files[name] for name in (*small, *weights) if name in files}
        cache = Path(constants.HF_HUB_CACHE, f"models--{model.replace('/', '--')}", "blobs")
        blobs = {file.lfs.sha256 if file.lfs else file.blob_id for file in wanted.values()}
        with arriving(cache, blobs, sum(file.size or 0 for file in wanted.values()), events):
            allowed = [glob.escape(name) for name in wanted]  # never the same weights again as *.bin or originals
            folder = Path(snapshot_download(model, revision=info.sha, allow_patterns=allowed))
    except (OSError, ValueError, KeyError, TypeError, HTTPError) as problem:
        raise BadInput(f"{model} cannot be downloaded from the Hub: {problem}") from None
    for name in (*small, *weights):
        path = folder / name
        if name not in files or not path.is_file() or path.stat().st_size != files[name].size:
            raise BadInput(f"The download of {model} is not complete: {name} is missing or has another size.")
    return str(folder)


@contextlib.contextmanager
def arriving(cache: Path, blobs: set[Any], total: int, events: Events) -> Iterator[None]:
    """Say every second how many bytes of these blobs are in the cache by now; unfinished ones have longer names."""
    over = threading.Event()

    def watch() -> None:
        while not over.wait(1.0):
            arrived = 0
            for path in cache.glob("*"):
                with contextlib.suppress(OSError):  # renamed just now
                    arrived += path.stat().st_size if path.name.partition(".")[0] in blobs else 0
            events.progress(min(arrived, total), total)

    thread = threading.Thread(target=watch)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def read_json(path: Path, what: str) -> dict[str, Any]:
    """The JSON object in a file."""
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as problem:
        raise BadInput(f"{what} cannot be read from {path}: {problem}.") from None
    if not isinstance(document, dict):
        raise BadInput(f"{what} in {path} is not a JSON object.")
    return document


def incomplete(folder: Path) -> str | None:
    """What a checkpoint lacks, as a sentence: a configuration, weight files, or the end of one. None when complete."""
    from safetensors import SafetensorError, safe_open

    read_json(folder / "config.json", "The model's configuration")
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        names = sorted(set(read_json(index, "The index of the weights").get("weight_map", {}).values()))
    else:
        names = sorted(path.name for path in folder.glob("*.safetensors"))
    if not names and not any(folder.glob("*.bin")):
        return f"{folder} holds no weights (*.safetensors)."
    for path in (folder / name for name in names):
        if not path.is_file():
            return f"{path} is missing, although the index names it."
        try:
            with safe_open(str(path), framework="np"):  # compares the header with the length of the file
                pass
        except (OSError, SafetensorError) as problem:
            return f"{path} is cut off or no safetensors file: {problem}."
    return None


def quantization_config(options: argparse.Namespace) -> Any:
    """The engine's configuration, made before the model is loaded: a wrong name costs seconds and not hours."""
    from quark.torch import LLMTemplate
    from quark.torch.quantization.config.algo_configs import get_supported_algorithm_types
    from quark.torch.quantization.config.config import load_quant_algo_config_from_file

    model_type, layers = model_type_of(options), dict(options.layer_quant_scheme)
    asked = [("scheme", name, LLMTemplate.get_supported_schemes()) for name in (options.quant_scheme, *layers.values())]
    asked += [("algorithm", name, get_supported_algorithm_types()) for name in options.quant_algo]
    for what, name, names in (*asked, ("template for the model type", model_type, LLMTemplate.list_available())):
        if name not in names:
            near = ", ".join(difflib.get_close_matches(name, names, n=3, cutoff=0.4))
            raise BadInput(f"Quark has no {what} {name!r}" + (f"; near it are {near}." if near else "."))
    template, files = LLMTemplate.get(model_type), dict(options.quant_algo_config_file)
    for name in options.quant_algo:
        if name not in files and template.algo_config.get(name) is None:
            raise BadInput(f"Quark has no {name} for {model_type} built in: give --quant_algo_config_file {name} FILE.")
    if options.kv_cache_dtype and not template.kv_layers_name:
        raise BadInput(f"The template of {model_type} names no key and value layers: leave --kv_cache_dtype out.")
    try:
        config = template.get_config(
            scheme=options.quant_scheme, algorithm=options.quant_algo or None, kv_cache_scheme=options.kv_cache_dtype,
            min_kv_scale=options.min_kv_scale, layer_config=layers, exclude_layers=options.exclude_layers,
            algo_configs={name: load_quant_algo_config_from_file(file) for name, file in files.items()} or None,
        )  # fmt: skip
    except (ValueError, KeyError, TypeError) as problem:
        raise BadInput(f"Quark refuses this configuration: {problem}") from None
    if options.kv_cache_post_rope:
        if not hasattr(config, "kv_cache_post_rope"):
            raise BadInput("This version of Quark cannot quantize keys after the rotary embedding.")
        config.kv_cache_post_rope = True
    return config


def model_type_of(options: argparse.Namespace) -> str:
    """The family in the model's configuration, refused where transformers would need the repository's code for it."""
    from transformers.models.auto.configuration_auto import CONFIG_MAPPING
    from transformers.utils import cached_file

    try:
        path = Path(cached_file(options.model_dir, "config.json"))
    except OSError as problem:
        raise BadInput(f"{options.model_dir} is no folder, and the Hub does not give it: {problem}") from None
    document = read_json(path, "The model's configuration")
    model_type = str(document.get("model_type", ""))
    if model_type not in CONFIG_MAPPING and not options.trust_remote_code:
        code = " without the code of its repository (--trust_remote_code)" if "auto_map" in document else ""
        raise BadInput(f"The installed transformers cannot build the model type {model_type!r}{code}.")
    return model_type


def load_tokenizer(options: argparse.Namespace, source: str | Path) -> Any:
    """The tokenizer. For a named dataset Quark prepares it (padding), so that samples are those of its own scripts."""
    from quark.torch.utils.llm import get_tokenizer
    from transformers import AutoTokenizer

    trust = options.trust_remote_code
    try:
        if options.dataset.endswith(TEXT_FILES):
            return AutoTokenizer.from_pretrained(str(source), trust_remote_code=trust)
        return get_tokenizer(str(source), model_type=model_type_of(options), trust_remote_code=trust)
    except (OSError, ValueError, ImportError, KeyError) as problem:
        raise BadInput(f"The tokenizer of {source} cannot be loaded: {problem}") from None


@dataclass(frozen=True)
class Data:
    """Tokens on the CPU: calibration batches as the engine takes them, and windows [count, length] to evaluate on."""

    batches: list[Any]
    windows: list[Any]
    evaluated_on: str


def load_data(options: argparse.Namespace, tokenizer: Any) -> Data:
    """Everything to calibrate and to evaluate on; refuses what is short of the samples asked for."""
    data = local_data(options, tokenizer) if options.dataset.endswith(TEXT_FILES) else named_data(options, tokenizer)
    samples = sum(len(batch["input_ids"] if isinstance(batch, dict) else batch) for batch in data.batches)
    # The two benchmark sets join and cut their samples, so that fewer come out than go in: that is their definition.
    if samples < options.num_calib_data and not (samples and options.dataset.endswith("_benchmark")):
        raise BadInput(f"{options.dataset} has {samples} samples; --num_calib_data asks for {options.num_calib_data}.")
    return data


def local_data(options: argparse.Namespace, tokenizer: Any) -> Data:
    """Calibration from the beginning of a text, evaluation from its end, without overlap."""
    tokens = tokenizer(read_text(Path(options.dataset)), return_tensors="pt")["input_ids"][0]
    calibration = options.num_calib_data * options.seq_len
    windows, length = (0, 0) if options.skip_evaluation else (options.eval_windows, options.eval_seq_len)
    if length and not windows:
        windows = max(1, (len(tokens) - calibration) // length)
    if len(tokens) < calibration + windows * length:
        parts = f"calibration needs {calibration:,}" + (f" and evaluation {windows * length:,}" if length else "")
        raise BadInput(f"{options.dataset} has {len(tokens):,} tokens, but {parts}: take a longer text or less of it.")
    return Data(
        batches=list(tokens[:calibration].reshape(-1, options.seq_len).split(options.batch_size)),
        windows=list(tokens[-windows * length :].split(length)) if length else [],
        evaluated_on=Path(options.dataset).name,
    )


def read_text(path: Path) -> str:
    """The text of a .txt file, or the column `text` of a .jsonl file with empty lines between the rows."""
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as problem:
        raise BadInput(f"The text {path} cannot be read: {problem}.") from None
    if path.suffix != ".jsonl":
        return text
    rows = []
    for number, line in enumerate(filter(str.strip, text.split("\n")), start=1):
        try:
            rows.append(json.loads(line)["text"].strip())
        except (ValueError, KeyError, TypeError, AttributeError):
            raise BadInput(f"Row {number} of {path} is not a JSON object with a text.") from None
    return "\n\n".join(rows)


def named_data(options: argparse.Namespace, tokenizer: Any) -> Data:
    """Calibration as Quark prepares it; evaluation on the beginning of wikitext-2's test split, as its scripts do."""
    from datasets import load_dataset
    from datasets.exceptions import DatasetsError
    from quark.torch.utils.llm import get_calib_dataloader

    name = options.dataset
    try:
        sizes = {"num_calib_data": options.num_calib_data, "seqlen": options.seq_len, "batch_size": options.batch_size}
        # Samples after the last full batch would otherwise be lost without a word, hence drop_last.
        loader = get_calib_dataloader(name, tokenizer=tokenizer, device="cpu", drop_last=False, **sizes)
        windows: list[Any] = []
        if not options.skip_evaluation:
            name, length = "Salesforce/wikitext", options.eval_seq_len
            rows = load_dataset(name, "wikitext-2-raw-v1", split="test")["text"]
            tokens = tokenizer("\n\n".join(rows), return_tensors="pt")["input_ids"][0]
            windows = [part for part in tokens.split(length) if len(part) == length][: options.eval_windows or None]
    except NotImplementedError:
        raise BadInput(f"Quark has no dataset {name}: take another name, or a .txt or .jsonl file.") from None
    except (OSError, ValueError, DatasetsError) as problem:
        raise BadInput(f"The dataset {name} cannot be loaded: {problem}") from None
    return Data(batches=list(loader), windows=windows, evaluated_on="wikitext-2-raw-v1")


def evaluate(of: str, model: Any, data: Data, events: Events) -> None:
    """Say the perplexity: exp of the mean negative log-likelihood of every token but the first of its window."""
    import torch

    total, scored, windows = 0.0, 0, data.windows
    with torch.no_grad():
        for done, window in enumerate(windows, start=1):
            window = window.to(model.device)
            # The cache stays on: with keys quantized after the rotary embedding, it is what quantizes them.
            logits = model(input_ids=window.unsqueeze(0)).logits[0, :-1].float()
            total += torch.nn.functional.cross_entropy(logits, window[1:].to(logits.device), reduction="sum").item()
            scored += len(window) - 1
            events.progress(done, len(windows))
    value = math.exp(total / scored) if total / scored < 700 else None  # NaN too becomes None
    events.write("perplexity", of=of, value=value, dataset=data.evaluated_on, tokens=scored + len(windows))


def quantize(model: Any, config: Any, batches: Any, events: Events) -> Any:
    """The quantized and frozen model."""
    from quark.torch import ModelQuantizer
    from quark.torch.quantization.nn.modules.mixin import QuantMixin
    from quark.torch.utils.llm import preprocess_for_quantization

    events.enter("replacing_modules")
    preprocess_for_quantization(model)
    quantizer = ModelQuantizer(config)
    if config.algo_config:
        announce(quantizer, "_apply_advanced_quant_algo", "optimizing", events)
    announce(quantizer, "_do_calibration", "calibrating", events)
    model = quantizer.quantize_model(model, batches)
    if not any(isinstance(module, QuantMixin) for module in model.modules()):
        raise BadInput("Nothing was quantized: every layer is excluded, or the model was quantized before.")
    events.enter("freezing")
    return quantizer.freeze(model)


def announce(quantizer: Any, step: str, phase: str, events: Events) -> None:
    """Enter a phase when the quantizer begins one of its steps, and count the batches that pass through the model.

    The engine has no hook for this. With an engine that has no such step, the phase is just not announced.
    """
    original = getattr(quantizer, step, lambda model, _: model)

    def announced(model: Any, batches: Any) -> Any:
        events.enter(phase)
        passed = itertools.count(1)
        watch = model.register_forward_hook(lambda *_: events.progress(min(next(passed), len(batches)), len(batches)))
        try:
            return original(model, batches)
        finally:
            watch.remove()

    setattr(quantizer, step, announced)


def export(model: Any, tokenizer: Any, options: argparse.Namespace, events: Events) -> None:
    """Write the checkpoint through the engine, and make sure that it is all there."""
    import torch
    from quark.torch import export_safetensors

    output = options.output_dir
    # First, because the engine then lays the source's own tokenizer files over these, without the padding set here.
    tokenizer.save_pretrained(str(output))
    with torch.no_grad():
        export_safetensors(model, str(output), weight_format="real_quantized")
    for path in written(output):
        with path.open("rb") as file:
            os.fsync(file.fileno())  # some file systems say only here that the disk is full
    if problem := incomplete(output):
        raise RuntimeError(f"The export is not complete: {problem}")
    load_tokenizer(options, output)  # the engine copies its files at best effort: a full disk would cut them off
    events.write("output", dir=str(output.resolve()), bytes=sum(path.stat().st_size for path in written(output)))


def written(output: Path) -> list[Path]:
    """What is in the output folder, without what earlier tries left there and their runner set apart."""
    return [path for path in output.iterdir() if not path.name.startswith(".partial-")]


if __name__ == "__main__":
    sys.exit(main())
