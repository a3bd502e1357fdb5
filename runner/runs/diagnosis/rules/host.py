"""The machine: disk, permissions, connections between GPUs."""

from __future__ import annotations

from runner.runs.diagnosis.rule import Told, Where, rules_of
from schemas.artifacts.report import FailureClass

_REMOVE = "delete what the run left in its output folder: it looks like a model and is none."

RULES = rules_of(
    FailureClass.HOST,
    Told(
        r"No space left on device|\(os error 28\)|\[Errno 28\]|There is not enough space on the disk",
        "The disk is full.",
        f"Free disk space, or choose an output folder on another disk, and {_REMOVE}",
    ),
    Told(
        r"\[Errno 122\]|Disk quota exceeded",
        "The disk quota of the runner's user is used up.",
        f"Free some of it or have it raised, and {_REMOVE}",
    ),
    Told(
        r"\[Errno 30\]|Read-only file system|\(os error 30\)",
        "The output folder lies on a file system that can only be read.",
        "Choose another output folder, on a disk that the runner's user may write to.",
    ),
    Told(
        r"^PermissionError: |\[Errno 13\]",
        "The runner's user may not read or write something.",
        "Give that user access to what the line names, or choose another folder.",
    ),
    Told(
        r"\[Errno 24\]|Too many open files",
        "The command had more files open than a process may.",
        "Raise the limit of open files (ulimit -n, or LimitNOFILE of the service).",
    ),
    Told(
        r"\[Errno 5\]|Input/output error|\(os error 5\)|Stale file handle|\[Errno 116\]",
        "A disk or a network file system failed.",
        "Look in the kernel's log for errors of the disk, and at the server of a network file system.",
    ),
    Told(
        r"NCCL error in|\bnccl\w*Error\b|\bncclInternalError|RCCL error|NCCL WARN",
        "The GPUs could not connect to each other (NCCL, or RCCL on ROCm).",
        "Run it again with NCCL_DEBUG=INFO; look at the size of /dev/shm, at peer-to-peer access and IOMMU, and at "
        "which devices the run sees; or leave --use_tp out, since quantization itself needs no such connection.",
    ),
    Told(
        r"unable to (?:open|mmap|allocate) shared memory|insufficient shared memory|unable to write to file </torch_",
        "There was no shared memory left (/dev/shm).",
        "Give the container or host more of it (--shm-size, or the size of /dev/shm).",
    ),
    Told(
        r"unable to mmap \d+ bytes|mmap failed|cannot mmap",
        "A file of weights could not be mapped into memory.",
        "Raise vm.max_map_count of the host, and look whether main memory suffices.",
    ),
    Told(
        r"HSA_STATUS_ERROR(?!_OUT_OF_RESOURCES)|hipErrorLaunchFailure|unspecified launch failure|uncorrectable ECC"
        r"|Memory access fault by GPU|GPU Hang",
        "The GPU or its driver failed.",
        "Look in the kernel's log (dmesg) for resets of the GPU, and try another GPU.",
    ),
    Told(
        r"Memory access fault by GPU|GPU Hang|HW Exception by GPU",
        "The GPU or its driver failed.",
        "Look in the kernel's log (dmesg) for resets of the GPU, and try another GPU.",
        where=Where.ANY_LINE,
    ),
)
