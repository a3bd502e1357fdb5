"""Ask the installed engine which modules of a model it will see: names and sizes, from the configuration alone.

    python module_probe.py --model_dir DIR [DIR ...] [--trust_remote_code] [--output FILE]

The model is made without weights (torch's meta device) by the engine's own loader and prepared by the engine as before
any quantization, which takes fused experts apart. Of a folder only config.json is read, and *.py with
--trust_remote_code: without it no code of the model runs, and nothing is asked of a network either way. Prints one JSON
document as the last (and only) line on stdout, or writes it to FILE: {"models": [one for each DIR, in order]}, each
with

    model_type, class     what config.json says, and the class that the engine's loader takes
    linear_count          linear layers: nn.Linear and classes made of it, which the engine's exclusions are counted in
    linears               groups of {pattern, numbers, count, in_features, out_features, class, replaced}; only those
                          with `replaced` are ever quantized: the engine replaces nn.Linear itself, no class made of it
    convolutions          the same for convolutions, which the engine quantizes too, with `shape` of the weight
    norms                 patterns of the normalisation layers
    kept                  groups of {pattern, numbers, count, class, shape} that hold matrices the engine leaves alone
    prepared              {pattern, count, from, to}: classes that the engine's preparation put in the place of others
    quantized             config.json says that the weights are quantized already; the list is that of the plain model

In a pattern `*` stands for a number, and `numbers` says which for each of them ("0-35", "0,2,4-9"). A group is every
combination of its numbers; layers that do not form one are told in several groups. Importing the engine takes 15 to 65
seconds and 0.6 GB, a model of 45,000 layers about 5 seconds more.

Exit status: 0; 1 with one sentence on stderr when a model cannot be made; 3 with one when the engine cannot be
imported.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import re
import shutil
import sys
import tempfile
import threading
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

NUMBER = re.compile(r"(?:(?<=\.)|^)(?:0|[1-9]\d{0,8})(?=\.|$)")
MOST_MODULES = 2_000_000
MOST_GROUPS = 5_000
LONGEST_CONFIG = 16_000_000
STATM = Path("/proc/self/statm")
Product = tuple[tuple[int, ...], ...]


class BadModel(Exception):
    """The model cannot be made. Its text is one sentence for the person."""


def main(arguments: list[str] | None = None) -> int:
    """Write the document and return the exit status."""
    options = parse(arguments)
    os.environ["HF_HUB_OFFLINE"] = "1"
    watch_memory(options.memory_bytes)
    try:
        with stdout_to_stderr(), tempfile.TemporaryDirectory(prefix="modules-") as place:
            os.environ["HF_MODULES_CACHE"] = f"{place}/code"  # code of a model stays out of the user's own cache
            folders = [bare_copy(folder, Path(place, str(n)), options) for n, folder in enumerate(options.model_dir)]
            build = loader()
            document = json.dumps({"models": [told(build, *each, options) for each in folders]}, sort_keys=True)
        if options.output is None:
            print(document, flush=True)
        else:
            write(options.output, document)
    except ImportError as problem:
        print(f"The engine cannot be imported by {sys.executable}: {in_words(problem)}", file=sys.stderr)
        return 3
    except BadModel as problem:
        print(in_words(problem), file=sys.stderr)
        return 1
    return 0


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Read the command line; a wrong one ends the program with status 2."""
    parser = argparse.ArgumentParser(description="Tell which modules of a model the engine will see.")
    parser.add_argument("--model_dir", required=True, nargs="+", type=Path, help="Folders with a config.json.")
    parser.add_argument("--trust_remote_code", action="store_true", help="Run the model's own code where it needs it.")
    parser.add_argument("--output", type=Path, help="Write the document there instead of to stdout.")
    parser.add_argument("--memory_bytes", type=int, default=8 * 2**30, help="End before taking more than this.")
    return parser.parse_args(arguments)


def in_words(problem: BaseException) -> str:
    """The message of an error in one line; its name where it has none."""
    return " ".join(str(problem).split())[:600] or type(problem).__name__


def watch_memory(most_bytes: int) -> None:
    """End the process with a sentence once it takes more memory: config.json may ask for a billion layers."""
    page = os.sysconf("SC_PAGE_SIZE")

    def watch() -> None:
        pause = threading.Event()
        while True:
            taken = int(STATM.read_text(encoding="ascii").split()[1]) * page
            if taken > most_bytes:
                # From here, since the main thread may be deep in a loop that never looks.
                os.write(2, f"The model's list of modules needs more than {most_bytes} bytes of memory.\n".encode())
                os._exit(1)
            pause.wait(0.2)

    if STATM.exists():
        threading.Thread(target=watch, daemon=True).start()


@contextlib.contextmanager
def stdout_to_stderr() -> Iterator[None]:
    """Send whatever is printed meanwhile, also by compiled code, to stderr: stdout is for the document alone."""
    sys.stdout.flush()
    kept = os.dup(1)
    os.dup2(2, 1)
    try:
        yield
    finally:
        sys.stdout.flush()
        os.dup2(kept, 1)
        os.close(kept)


def write(output: Path, document: str) -> None:
    """Put the document into its file at once."""
    try:
        temporary = output.with_name(f".{output.name}.{os.getpid()}")
        temporary.write_text(document + "\n", encoding="utf-8")
        temporary.replace(output)
    except OSError as problem:
        raise BadModel(f"The list of modules cannot be written to {output}: {problem}") from None


def bare_copy(folder: Path, target: Path, options: argparse.Namespace) -> tuple[Path, dict[str, Any]]:
    """A folder with the configuration alone, as of a model that is not quantized, and that configuration.

    Without weights there is nothing to dequantize, so the loader must not try.
    """
    path = folder / "config.json"
    try:
        if path.stat().st_size > LONGEST_CONFIG:
            raise BadModel(f"{path} is larger than any config.json.")
        config = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError, RecursionError) as problem:
        raise BadModel(f"{path} cannot be read: {in_words(problem)}") from None
    if not isinstance(config, dict):
        raise BadModel(f"{path} does not hold a JSON object.")
    plain = without_quantization(config)
    target.mkdir()
    (target / "config.json").write_text(json.dumps(plain), encoding="utf-8")
    if options.trust_remote_code:
        for code in folder.rglob("*.py"):
            (target / code.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(code, target / code.relative_to(folder))
    return target, {**config, "_quantized": plain != config}


def without_quantization(config: Mapping[str, Any]) -> dict[str, Any]:
    """The configuration without what it says of quantized weights, on every level."""
    return {
        key: without_quantization(value) if isinstance(value, dict) else value
        for key, value in config.items()
        if key not in ("quantization_config", "compression_config")
    }


def loader() -> Any:
    """The engine's loader of models, from which only configurations are taken. Imports the engine.

    Which class a family has is decided in there. Every way it goes ends in `from_pretrained` of a model class: that is
    replaced by making the class on the meta device.
    """
    import torch
    from quark.torch.utils.llm import get_model
    from transformers import PreTrainedModel

    def from_pretrained(cls: Any, folder: str, /, *_: Any, config: Any = None, **options: Any) -> Any:
        found = config if config is not None else cls.config_class.from_pretrained(folder)
        kept = {name: options[name] for name in ("attn_implementation",) if name in options}
        with no_init_weights(), torch.device("meta"):
            return cls._from_config(found, **kept)

    PreTrainedModel.from_pretrained = classmethod(from_pretrained)
    return get_model


def no_init_weights() -> Any:
    """A context in which new models are not filled with random numbers, as transformers calls it."""
    try:
        from transformers.initialization import no_init_weights as context  # transformers 5
    except ImportError:
        from transformers.modeling_utils import no_init_weights as context
    return context()


def told(build: Any, folder: Path, config: Mapping[str, Any], options: argparse.Namespace) -> dict[str, Any]:
    """What is said of one model."""
    from quark.torch.utils.llm import preprocess_for_quantization

    family = config.get("model_type")
    try:
        model, _ = build(str(folder), "auto", "meta", None, trust_remote_code=options.trust_remote_code)
        before = {name: type(module) for name, module in model.named_modules(remove_duplicate=False)}
        preprocess_for_quantization(model)
    except Exception as problem:  # whatever a configuration or a model's code may raise: told in one sentence
        if str(problem).startswith("Unrecognized configuration class"):
            raise BadModel(
                f"The engine loads models that generate text, and transformers has none for {family}."
            ) from None
        raise BadModel(f"The model type {family} cannot be made from config.json: {in_words(problem)}") from None
    found = described(model, before)
    return {"model_type": family, "class": type(model).__name__, "quantized": config["_quantized"], **found}


def described(model: Any, before: Mapping[str, type]) -> dict[str, Any]:
    """All modules in groups. `before` has their classes before the engine's preparation."""
    from quark.torch.quantization.model_transformation import LAYER_TO_QUANT_LAYER_MAP as QUANTIZED
    from torch import nn

    embeddings = (nn.Embedding, nn.EmbeddingBag)  # the engine takes those only where an override names them
    linears, convolutions, kept = Collected(), Collected(), Collected()
    norms: set[str] = set()
    prepared: Counter[tuple[str, str, str]] = Counter()
    for number, (name, module) in enumerate(model.named_modules(remove_duplicate=False)):
        if number >= MOST_MODULES:
            raise BadModel(f"The model has more than {MOST_MODULES} modules.")
        kind = type(module)
        was = before.get(name, kind)
        if was is not kind:
            prepared[NUMBER.sub("*", name), was.__name__, kind.__name__] += 1
        if isinstance(module, embeddings):
            continue
        if kind in QUANTIZED and kind is not nn.Linear:
            convolutions.add(name, (kind.__name__, *module.weight.shape))
        elif isinstance(module, nn.Linear):
            linears.add(name, (kind.__name__, module.in_features, module.out_features, kind in QUANTIZED))
        elif "norm" in kind.__name__.lower():
            norms.add(NUMBER.sub("*", name))
        else:
            shapes = [tuple(parameter.shape) for parameter in module.parameters(recurse=False) if parameter.dim() > 1]
            if shapes:
                kept.add(name, (kind.__name__, *max(shapes, key=len)))
    groups = [
        {"class": kind, "in_features": inputs, "out_features": outputs, "replaced": replaced, **group}
        for (kind, inputs, outputs, replaced), group in linears.groups()
    ]
    return {
        "linear_count": sum(group["count"] for group in groups),
        "linears": groups,
        "convolutions": [{"class": key[0], "shape": key[1:], **group} for key, group in convolutions.groups()],
        "norms": sorted(norms),
        "kept": [{"class": key[0], "shape": key[1:], **group} for key, group in kept.groups()],
        "prepared": [
            {"pattern": pattern, "count": count, "from": was, "to": now}
            for (pattern, was, now), count in sorted(prepared.items())
        ],
    }


class Collected:
    """Modules that are alike but for the numbers in their names."""

    def __init__(self) -> None:
        self._numbers: defaultdict[tuple[str, tuple[Any, ...]], set[tuple[int, ...]]] = defaultdict(set)

    def add(self, name: str, key: tuple[Any, ...]) -> None:
        """Take in a module; `key` is what else it has to share with those of its group."""
        numbers = tuple(int(number) for number in NUMBER.findall(name))
        self._numbers[NUMBER.sub("*", name), key].add(numbers)

    def groups(self) -> Iterator[tuple[tuple[Any, ...], dict[str, Any]]]:
        """Each group with its key: by pattern, then by key."""
        told = 0
        for (pattern, key), numbers in sorted(self._numbers.items()):
            for product in products(numbers):
                told += 1
                if told > MOST_GROUPS:
                    raise BadModel(f"The model's modules fall into more than {MOST_GROUPS} groups.")
                count = 1
                for axis in product:
                    count *= len(axis)
                yield key, {"pattern": pattern, "numbers": [ranges(axis) for axis in product], "count": count}


def products(points: Iterable[tuple[int, ...]]) -> list[Product]:
    """Disjoint cross products that together are the points: of two ways to find them, the one with fewer."""
    points = list(points)
    forward = split(points)
    backward = [product[::-1] for product in split([point[::-1] for point in points])]
    return sorted(backward if len(backward) < len(forward) else forward)


def split(points: Iterable[tuple[int, ...]]) -> list[Product]:
    """Points that differ in the first number alone together, wherever the rest behind it is the same."""
    behind: defaultdict[int, set[tuple[int, ...]]] = defaultdict(set)
    for point in points:
        if not point:
            return [()]
        behind[point[0]].add(point[1:])
    alike: defaultdict[frozenset[tuple[int, ...]], list[int]] = defaultdict(list)
    for first, rest in behind.items():
        alike[frozenset(rest)].append(first)
    return [(tuple(sorted(firsts)), *product) for rest, firsts in alike.items() for product in split(rest)]


def ranges(numbers: Iterable[int]) -> str:
    """Ascending numbers as a text: "0,2,4-9"."""
    runs: list[list[int]] = []
    for number in numbers:
        if runs and number == runs[-1][1] + 1:
            runs[-1][1] = number
        else:
            runs.append([number, number])
    return ",".join(str(first) if first == last else f"{first}-{last}" for first, last in runs)


if __name__ == "__main__":
    sys.exit(main())
