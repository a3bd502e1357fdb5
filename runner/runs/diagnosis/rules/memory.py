"""Memory of the GPUs and of the host."""

from __future__ import annotations

from runner.runs.diagnosis.rule import Help, Told, Where, rules_of
from schemas.artifacts.report import FailureClass

LESS_WORK = (Help.SMALLER_BATCH, Help.FEWER_SAMPLES, Help.SHORTER_SAMPLES)
"""What holds less at once and changes nothing else, the smallest change first."""

RULES = rules_of(
    FailureClass.MEMORY,
    Told(
        r"\bOutOfMemoryError\b|\b(?:CUDA|HIP) out of memory\b|hipErrorOutOfMemory|CUDA_ERROR_OUT_OF_MEMORY"
        r"|\b(?:CUDA|HIP) error: out of memory|HSA_STATUS_ERROR_OUT_OF_RESOURCES|C(?:UBLAS|UDNN)_STATUS_ALLOC_FAILED",
        "The GPU ran out of memory.",
        "Calibrate with batch_size 1, on fewer or shorter samples; or use several GPUs together (--multi_gpu auto), "
        "file to file (--file2file_quantization), a GPU with more memory or a smaller model. Where GPU and host share "
        "memory (an APU), see how much the BIOS gives to the GPU (VRAM carve-out).",
        (*LESS_WORK, Help.SEVERAL_GPUS, Help.FILE_TO_FILE),
        short_of="gpu",
    ),
    Told(
        # The engine says this of every model that does not lie wholly on GPUs, also where there is none.
        r"^MemoryError: Out of memory\. The available GPU memory is insufficient",
        "The model does not lie wholly on GPUs: they have too little memory for it, or there is none.",
        "Without a GPU, take the entry point own or quantize_quark.py with --device cpu. With one, quantize file by "
        "file (--file2file_quantization), or take a GPU with more memory or several together.",
        (Help.FILE_TO_FILE, Help.SEVERAL_GPUS, Help.OWN_PROGRAM),
    ),
    Told(
        r"^MemoryError(?::? *$|: Unable to allocate)|DefaultCPUAllocator: (?:can't|not enough)|\[Errno 12\]"
        r"|std::bad_alloc|numpy\.\S*_ArrayMemoryError|\(os error 12\)",
        "The host ran out of memory.",
        "Calibrate on fewer or shorter samples, or take a host with more memory.",
        (*LESS_WORK, Help.FILE_TO_FILE),
        short_of="host",
    ),
    Told(
        r"Out of memory: Killed process|oom-kill:|Memory cgroup out of memory|oom_reaper|oom[-_]kill event",
        "The kernel ended a process because main memory was used up.",
        "Calibrate on fewer or shorter samples, or take a host with more memory.",
        (*LESS_WORK, Help.FILE_TO_FILE),
        Where.ANY_LINE,
        short_of="host",
    ),
)
