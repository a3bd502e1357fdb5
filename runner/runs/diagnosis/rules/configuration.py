"""What was asked for: schemes, algorithms, sizes, arguments."""

from __future__ import annotations

from runner.runs.diagnosis.rule import Help, Told, rules_of
from schemas.artifacts.report import FailureClass

RULES = rules_of(
    FailureClass.CONFIGURATION,
    Told(
        r"^MemoryError: Out of memory\. The available GPU memory is insufficient",
        "quark-cli spreads a model over GPUs, also where there is none; the message that blames GPU memory misleads.",
        "Without a GPU take quantize_quark.py with --device cpu, or our own script (entry_point own); with one, take "
        "a GPU with more memory or several.",
        (Help.OWN_PROGRAM, Help.FILE_TO_FILE),
        within=r"experimental/cli/|quark-cli |--device[ =]cpu\b",
    ),
    Told(
        r"(?:error: argument --(?:layer_)?quant_scheme\b.*)?invalid choice: '?(?P<name>[^' ]+).*\bint4_wo_",
        "The engine has no scheme of the name {name}.",
        "Take one of the names that it lists, such as fp8: older names (w_fp8_a_fp8 and its kind) are gone.",
        (Help.OTHER_SCHEME,),
    ),
    Told(
        r"error: (?:argument (?P<name>\S+)|unrecognized arguments|the following arguments are required)",
        "The program does not take these arguments.",
        "Compare the argument that is named with the program's --help; another version may spell it otherwise.",
        (Help.OWN_PROGRAM,),
    ),
    Told(
        r"No built-in (?P<name>\w+) configuration is available for",
        "The engine has no configuration of {name} for this model family.",
        "Plan without {name}, or with a configuration for it (--quant_algo_config_file; write_algorithm_config).",
        (Help.WRITE_CONFIG, Help.NO_ALGORITHM),
    ),
    Told(
        r"which is not divisible by group_size=(?P<name>\d+)",
        "Groups of {name} do not divide the width of a layer.",
        "Take a smaller group or a per-channel scheme, or leave that layer out.",
        (Help.OTHER_SCHEME,),
    ),
    Told(
        r"not aligned with the quantized weight shape"
        r"|is not divisible by weight quantization block_(?:n|k)|not divisible by .{0,40}tensor parallel",
        "A server cannot split the groups of a quantized layer over that many GPUs.",
        "Serve it with fewer GPUs (tensor parallelism), or quantize with a smaller group or per channel, so that the "
        "width of a layer divides by group size x GPUs.",
        (Help.OTHER_SCHEME,),
    ),
    Told(
        r"^ValueError: Unsupported (?:KV|kv)[ _-]?cache",
        "The engine has no such scheme for the KV cache.",
        "Take fp8 for the KV cache, or leave it as it is.",
        (Help.NO_KV_CACHE,),
    ),
    Told(
        r"^ValueError: Unsupported (?P<name>attention scheme|algorithm|evaluation dataset|quantization scheme|scheme)",
        "The engine has no such {name}.",
        "Take one that the installed engine offers: `ptq-runner plan` lists them.",
        (Help.OTHER_SCHEME, Help.NO_ALGORITHM),
    ),
    Told(
        r"trust_remote_code=True|requires you to execute the (?:configuration|modeling|tokenizer) file"
        r"|contains custom code which must be executed",
        "The model brings its own code, and running that was not approved.",
        "Read that code, then approve it (trust_remote_code) where the runner allows it.",
    ),
    Told(
        r"^KeyError: 'Template for '|Template for '?(?P<name>[\w.-]+)'? (?:not found|is not)|No template found for",
        "The engine has no template for this model family.",
        "Give a template of the site (--template_file), or take a model of a family that the engine knows.",
    ),
    Told(
        r"multi_device.{0,60}(?:not support|unsupported)|not support.{0,60}multi_device",
        "The engine does not combine multi_device with this plan.",
        "Plan without multi_device, or without the algorithm.",
        (Help.NO_ALGORITHM,),
    ),
)
