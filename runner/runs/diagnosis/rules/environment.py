"""What is installed: Python packages, the build of torch, drivers, compilers."""

from __future__ import annotations

from runner.runs.diagnosis.rule import Help, Told, Where, rules_of
from schemas.artifacts.report import FailureClass

_CLI_EXTRA = "Install what quark-cli needs (pip install 'amd-quark[cli]'), or take another entry point."
_DEVICES = (
    "Look at rocm-smi or nvidia-smi, at the mask (HIP_VISIBLE_DEVICES, CUDA_VISIBLE_DEVICES), at the groups render and "
    "video of the runner's user, and whether a container was given its devices (--device /dev/kfd --device /dev/dri, "
    "or --gpus). Quantizing on the CPU is another plan, and nothing that happens by itself."
)

RULES = rules_of(
    FailureClass.ENVIRONMENT,
    Told(
        r"^(?:ModuleNotFoundError|ImportError): No module named '(?P<name>[^']+)'",
        "quark-cli lacks {name}, a package that its extra brings.",
        _CLI_EXTRA,
        (Help.OWN_PROGRAM,),
        within=r"/quark-cli\b|\bquark-cli |experimental/cli/",
    ),
    Told(
        r"^(?:ModuleNotFoundError|ImportError): No module named '(?P<name>timm|onnxruntime|onnx|onnxslim|onnxsim)\b",
        "{name} is missing in the quantization interpreter; of the engine's programs quark-cli needs it.",
        _CLI_EXTRA,
        (Help.OWN_PROGRAM,),
    ),
    Told(
        r"^(?:ModuleNotFoundError|ImportError): No module named ",
        "A Python package is missing in the quantization interpreter.",
        "Install the package that is named into the quantization interpreter.",
    ),
    Told(
        # What quantize_quark.py calls of the package. Seen with a checkout newer than amd-quark 0.13.
        r"^TypeError: (?:get_calib_dataloader|get_model|get_tokenizer|export_safetensors|eval_model)\w*\(\) got an "
        r"unexpected keyword argument |^ImportError: cannot import name .* from 'quark[.']",
        "The script and the installed amd-quark do not fit each other.",
        "Take the checkout of the release that is installed, or let our own script run (entry_point own).",
        (Help.OWN_PROGRAM,),
    ),
    Told(
        r"Torch not compiled with CUDA enabled|Torch not compiled with ROCm",
        "The installed torch is a build for the CPU, and the command asks for a GPU.",
        "Install the build of torch for this accelerator (ROCm or CUDA), or change the plan to the CPU (--device cpu).",
    ),
    Told(
        r"No (?:HIP|CUDA) GPUs are available|Found no NVIDIA driver|no CUDA-capable device is detected"
        r"|hipErrorNoDevice|no ROCm-capable device|CUDA driver initialization failed|CUDA driver version is insuff"
        r"|CUDA unknown error|initialization of cuda|HIP error: initialization|CUDA error: initialization"
        r"|invalid device ordinal",
        "torch is a build for a GPU, but sees none.",
        _DEVICES,
    ),
    Told(
        r"hipErrorNoBinaryForGpu|invalid device function|no kernel image is available",
        "The installed torch or kernel was not built for this GPU.",
        "Install a build that knows this GPU's architecture (gfx..., sm_...).",
    ),
    Told(
        r"Ninja is required|CUDA_HOME environment variable is not set|ROCM_HOME|Error building extension|"
        r"ninja: build stopped|No such file or directory: '(?:\S*/)?(?:hipcc|nvcc|ninja|g\+\+|c\+\+|gcc)'",
        "The engine could not compile its kernels.",
        "Install a C++ compiler, ninja and the toolkit of the accelerator (hipcc or nvcc) for the interpreter.",
    ),
    Told(
        r"^ImportError: .*(?:cannot open shared object file|undefined symbol|GLIBC(?:XX)?_)",
        "A compiled package does not fit the libraries of this host.",
        "Install builds of torch and of the package that belong together, and the library that is named.",
    ),
    Told(
        r"requires the following packages that were not found|requires the (?P<name>\S+) library but it was not found",
        "The model's code needs a Python package that is missing.",
        "Install the packages that the line names into the quantization interpreter.",
    ),
    Told(
        r"can't open file .*\[Errno 2\]",
        "The script is missing.",
        "Put the file back, or make a new manifest with an entry point that exists.",
        where=Where.ANY_LINE,
    ),
    Told(
        r"^(?:bash|sh|env|nohup|exec)?:? ?(?:line \d+: )?(?P<name>\S+): (?:command not found|not found)$",
        "A program is missing on this host.",
        "Install {name}, or add its folder to PATH.",
        where=Where.ANY_LINE,
    ),
)
