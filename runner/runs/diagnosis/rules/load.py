"""Reading the model, its tokenizer and the calibration data; fetching them from the Hub."""

from __future__ import annotations

from runner.runs.diagnosis.rule import Told, Where, rules_of
from schemas.artifacts.report import FailureClass

_FETCH = "Compare the sizes of the model's files with where they came from, and fetch again what differs."
_ACCESS = (
    "Ask for access on the model's page; a fine-grained token also needs the right "
    '"read access to public gated repos".'
)

RULES = rules_of(
    FailureClass.LOAD,
    Told(
        r"GatedRepoError|Cannot access gated repo|access a gated repo|Access to model .{1,200} is restricted",
        "The Hub gives this model only to accounts that were granted access.",
        _ACCESS,
    ),
    Told(
        r"Cannot access gated repo|Access to model .{1,200} is restricted",
        "The Hub gives this model only to accounts that were granted access.",
        _ACCESS,
        where=Where.ANY_LINE,
    ),
    Told(
        r"RepositoryNotFoundError|RevisionNotFoundError|EntryNotFoundError: 404|401 Client Error|Invalid user token"
        r"|is not a valid model identifier",
        "The Hub knows no such model, revision or file for this account.",
        "Look at the spelling of the name and revision, and at the token where the model is private.",
    ),
    Told(
        r"^(?:\S+\.)?HFValidationError: .*(?:Repo id must|repo_id)",
        "There is no model folder of that name on the runner's host, and what is no folder is taken for a name on the "
        "Hub.",
        "Look at the path on the runner's host, and name the folder by its absolute path.",
    ),
    Told(
        r"LocalEntryNotFoundError|OfflineModeIsEnabled|outgoing traffic has been disabled|offline mode is enabled"
        r"|couldn't connect to 'https://huggingface\.co|Couldn't reach .{1,200} on the Hub",
        "What the command needs of the Hub is not on this host, and the Hub could not be reached.",
        "Download it before the run (`hf download`, snapshot_download) and name the folder, or let the runner use the "
        "network; a dataset goes into the runner's mirror.",
    ),
    Told(
        r"Error while deserializing|SafetensorError: .*(?:incomplete metadata|header too|invalid header)"
        r"|file not fully covered|MetadataIncompleteBuffer|HeaderTooLarge|InvalidHeader|PytorchStreamReader failed"
        r"|unexpected EOF, expected",
        "A file of weights is truncated or damaged.",
        _FETCH + " Another version of transformers, which the engine advises here, does not help.",
    ),
    Told(
        r"Error no file named (?:model\.safetensors|pytorch_model\.bin)|no file named .{0,80} found in directory"
        r"|does not appear to have a file named (?:model\.safetensors|pytorch_model)",
        "The model's folder holds no weights.",
        "Finish the download of the model, or name the folder that holds its safetensors files; git without LFS leaves "
        "only pointers of about 130 bytes.",
    ),
    Told(
        r"Unrecognized model in .*model_type|does not appear to have a file named config\.json",
        "The folder has no config.json of a model.",
        "Name the folder that holds config.json: this may be the wrong directory, or the parent of a snapshot.",
    ),
    Told(
        r"Can't load tokenizer for|Couldn't instantiate the backend tokenizer|"
        r"(?:sentencepiece|tiktoken|SentencePiece)\b.{0,120}(?:install|not found|required)",
        "The tokenizer's files, or the packages that read them, are missing.",
        "Copy tokenizer.json or tokenizer.model and tokenizer_config.json from the original model; for some formats "
        "install sentencepiece, tiktoken and protobuf.",
    ),
    Told(
        r"tensor of 0 elements into shape",
        "The model was given texts without tokens: its tokenizer files are missing or empty.",
        "Copy the tokenizer files (tokenizer.json, tokenizer_config.json, tokenizer.model) from the original model.",
    ),
    Told(
        r"^(?:datasets\.\S+\.)?(?:DatasetNotFoundError|DataFilesNotFoundError)"
        r"|^ValueError: (?:Unknown split|Couldn't find cache for)|Dataset scripts are no longer supported",
        "The calibration or evaluation dataset cannot be read.",
        "Put it into the runner's mirror as it is laid out on the Hub, or calibrate on a .txt or .jsonl file.",
    ),
    Told(
        r"size mismatch for|Error\(s\) in loading state_dict|ignore_mismatched_sizes",
        "The weights do not have the shapes that config.json says.",
        _FETCH,
    ),
    Told(
        r"^(?:json\.decoder\.)?JSONDecodeError",
        "A JSON file of the model is damaged.",
        _FETCH,
        within=r"from_pretrained|tokenization|configuration_",
    ),
    Told(
        r"^(?:requests\.exceptions|httpx|urllib3\.exceptions|huggingface_hub\.errors)\.\w+(?:Error|Timeout)\b",
        "A download failed.",
        "Look whether this host reaches the Hub, then run it again; what was fetched is kept.",
    ),
)
