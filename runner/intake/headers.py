"""Names, shapes and dtypes of a model's tensors, from safetensors headers. Weights are never read.

A file is eight bytes of header length (little endian), the header as a JSON object, and the data, which the tensors'
offsets have to cover without gap or overlap. Source: the safetensors format, as its reference reader enforces it.
"""

from __future__ import annotations

import json
import struct
from collections import Counter
from dataclasses import dataclass
from math import prod
from pathlib import Path
from typing import Any, NamedTuple, TypeGuard

from runner.errors import NotHere, Refused
from runner.host.paths import listed
from runner.intake.reading import LONGEST_HEADER, header_length
from runner.intake.source import Source, as_source, read_object_of

SINGLE, INDEX = "model.safetensors", "model.safetensors.index.json"
LONGEST_INDEX = 200_000_000
_LFS_POINTER = b"version https://git-lfs"
_DOWNLOAD_AGAIN = "Download the file again, and compare its size with the original."
# Bits of one element.
_BITS = {
    **dict.fromkeys(("BOOL", "U8", "I8", "F8_E4M3", "F8_E5M2", "F8_E8M0", "F8_E4M3FNUZ", "F8_E5M2FNUZ"), 8),
    **dict.fromkeys(("I16", "U16", "F16", "BF16"), 16),
    **dict.fromkeys(("I32", "U32", "F32"), 32),
    **dict.fromkeys(("I64", "U64", "F64", "C64"), 64),
    **dict.fromkeys(("F6_E2M3", "F6_E3M2"), 6),
    "F4": 4,
}


class Tensor(NamedTuple):
    """One tensor as a header describes it. `shape` is in elements; `size_bytes` is its share of the file."""

    name: str
    dtype: str
    shape: tuple[int, ...]
    size_bytes: int
    file: str

    @property
    def elements(self) -> int:
        """Number of elements."""
        return prod(self.shape)


@dataclass(frozen=True)
class Headers:
    """All tensors of a model and the weight files that hold them.

    `loose` says that the files were found by their suffix alone, without the single file or the index by which
    transformers finds weights.
    """

    tensors: tuple[Tensor, ...]
    files: tuple[str, ...]
    loose: bool = False

    @property
    def size_bytes(self) -> int:
        """Bytes of all tensors together."""
        return sum(tensor.size_bytes for tensor in self.tensors)


@dataclass(frozen=True)
class WeightFiles:
    """Which files hold a model's weights. `index` is tensor -> file, where there is an index."""

    names: tuple[str, ...]
    index: dict[str, str] | None = None
    loose: bool = False


def weight_files(source: Source) -> WeightFiles:
    """The files in which transformers would look for weights; reads the index where there is one.

    Codes: weights_missing, weights_not_safetensors, weights_shard_missing, weights_index_broken.
    """
    present = set(source.listing.files)
    if SINGLE in present:  # the order in which transformers looks
        return WeightFiles((SINGLE,))
    if INDEX in present:
        index = _read_index(source)
        files = sorted(set(index.values()))
        if missing := [file for file in files if file not in present]:
            raise NotHere(
                "weights_shard_missing",
                f"{INDEX} names {len(files)} weight files, and {len(missing)} of them are not in {source.label()}: "
                f"{listed(missing[:3])}{', ...' if len(missing) > 3 else ''}.",
                source.advice or "Finish the download of the model.",
            )
        return WeightFiles(tuple(files), index)
    found = tuple(name for name in source.listing.files if name.endswith(".safetensors"))
    if not found:
        raise _no_weights(source)
    return WeightFiles(found, loose=True)


def read_headers(model: Source | Path) -> Headers:
    """The tensors of a model.

    Codes: those of `weight_files`, weights_truncated, weights_lfs_pointer, weights_header_broken, and those of reading
    a file.
    """
    source = as_source(model)
    files = weight_files(source)
    tensors = [tensor for name in files.names for tensor in read_header(source, name)]
    _check_names(source, tensors, files.index)
    return Headers(tuple(tensors), files.names, files.loose)


def read_header(source: Source, name: str) -> list[Tensor]:
    """The tensors of one safetensors file, in the order of their data."""
    file = _File(source.label(name), name, source.advice or _DOWNLOAD_AGAIN)
    with source.opened(name) as content:
        length = _header_length(file, content.read(8 + len(_LFS_POINTER), 0), content.size)
        data, size = content.read(length, 8), content.size
    try:
        header = json.loads(data.decode("utf-8"))
    except (ValueError, RecursionError):
        header = None
    if not isinstance(header, dict):
        raise _broken(file, "its header is not a JSON object")
    metadata = header.pop("__metadata__", None)
    texts = isinstance(metadata, dict) and all(isinstance(value, str) for value in metadata.values())
    if metadata is not None and not texts:
        raise _broken(file, "its __metadata__ is not an object of texts")
    return _checked(file, header, size - 8 - length)


class _File(NamedTuple):
    """A weight file for messages: as sentences name it, its name, and what to do when it is broken."""

    label: str
    name: str
    advice: str


def _header_length(file: _File, first: bytes, size: int) -> int:
    if first.startswith(_LFS_POINTER):
        raise Refused(
            "weights_lfs_pointer",
            f"{file.label} is a git-lfs pointer, not the weights themselves.",
            "Run `git lfs pull` in the model's clone, or download the model again.",
        )
    length = header_length(first, size)
    object_begins = first[8:9] in {b"{", b""}
    if length is not None and object_begins:
        return length
    claimed = struct.unpack("<Q", first[:8])[0] if len(first) >= 8 else 0
    if object_begins and claimed <= LONGEST_HEADER:
        raise Refused("weights_truncated", f"{file.label} ends after {size} bytes, within its header.", file.advice)
    raise Refused("weights_not_safetensors", f"{file.label} is not a safetensors file.", file.advice)


def _checked(file: _File, header: dict[str, Any], available: int) -> list[Tensor]:
    """The tensors of a header whose data is `available` bytes long."""
    spans = [_tensor(file, name, entry) for name, entry in header.items()]
    spans.sort(key=lambda span: (span[0], span[1].size_bytes))
    position = 0
    for begin, tensor in spans:
        if begin != position:
            kind = "overlaps the one before it" if begin < position else "leaves a gap before it"
            raise _broken(file, f"the data of {tensor.name} {kind}")
        position += tensor.size_bytes
    if position > available:
        raise Refused(
            "weights_truncated",
            f"{file.label} ends after {available} of its {position} bytes of weights.",
            file.advice,
        )
    if position < available:
        raise _broken(file, f"{available - position} bytes follow its last tensor")
    return [tensor for _, tensor in spans]


def _tensor(file: _File, name: str, entry: Any) -> tuple[int, Tensor]:
    """One entry of a header and where its data begins."""
    if not name or len(name) > 1000 or not name.isprintable():
        raise _broken(file, f"a tensor is named {ascii(name)[:100]}")
    if not isinstance(entry, dict):
        raise _broken(file, f"the entry of {name} is not an object")
    dtype, shape, offsets = entry.get("dtype"), entry.get("shape"), entry.get("data_offsets")
    if not isinstance(dtype, str) or dtype not in _BITS:
        raise _broken(file, f"{name} has the unknown dtype {ascii(dtype)[:40]}")
    if not _counts(shape) or len(shape) > 16:
        raise _broken(file, f"{name} has no usable shape")
    if not _counts(offsets) or len(offsets) != 2 or offsets[0] > offsets[1]:
        raise _broken(file, f"{name} has no usable data offsets")
    size = offsets[1] - offsets[0]
    if prod(shape) * _BITS[dtype] != size * 8:
        raise _broken(file, f"{name} has {size} bytes of data, which its shape and dtype do not fit")
    return offsets[0], Tensor(name, dtype, tuple(shape), size, file.name)


def _counts(value: Any) -> TypeGuard[list[int]]:
    """Whether a value is a list of whole numbers from 0 to 2^63. `type`, since true and false are ints to Python."""
    if type(value) is not list:
        return False
    for item in value:  # noqa: SIM110 - a generator takes three times as long, for every tensor twice
        if type(item) is not int or not 0 <= item < 2**63:
            return False
    return True


def _read_index(source: Source) -> dict[str, str]:
    """Tensor -> file of an index."""
    label, hint = source.label(INDEX), source.advice or "Download the index again."
    weight_map = read_object_of(source, INDEX, LONGEST_INDEX, "weights_index_broken").get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise Refused("weights_index_broken", f"{label} has no weight_map.", hint)
    for file in {file if isinstance(file, str) else repr(file) for file in weight_map.values()}:
        if "/" in file or not file.isprintable() or not file.endswith(".safetensors"):
            # Only files of the folder itself: a path could lead out of it.
            raise Refused("weights_index_broken", f"{label} names the weight file {ascii(file)[:100]}.", hint)
    return weight_map


def _check_names(source: Source, tensors: list[Tensor], index: dict[str, str] | None) -> None:
    """Each tensor once, and none that only the index knows. In which file one lies is of no matter to loading."""
    names = {tensor.name for tensor in tensors}
    if len(names) != len(tensors):
        twice = Counter(tensor.name for tensor in tensors).most_common(1)[0][0]
        raise Refused(
            "weights_index_broken",
            f"The tensor {twice} is in several weight files of {source.label()}.",
            source.advice or "Keep only the weight files that belong to the model.",
        )
    lost = [name for name in index or () if name not in names]
    if lost:
        raise Refused(
            "weights_index_broken",
            f"{INDEX} in {source.label()} names {len(lost)} tensors that no weight file holds, such as "
            f"{ascii(lost[0])[:200]}.",
            source.advice or "Download index and weights of the same revision.",
        )


def _no_weights(source: Source) -> Refused | NotHere:
    if others := source.listing.other_weights:
        return Refused(
            "weights_not_safetensors",
            f"{source.label()} has its weights in other files ({listed(others[:2])}), and no safetensors.",
            "Load the model once with transformers and save it again: save_pretrained writes safetensors.",
        )
    return NotHere(
        "weights_missing",
        f"{source.label()} has no *.safetensors files.",
        source.advice or "Finish the download of the model.",
    )


def _broken(file: _File, what: str) -> Refused:
    return Refused("weights_header_broken", f"{file.label} is broken: {what}.", file.advice)
