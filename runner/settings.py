"""runner.yaml and the environment variables PTQ_RUNNER_*.

A variable names a setting by its path, as in PTQ_RUNNER_QUARK__CHECKOUT, and wins over the file.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict, SettingsError

from runner.errors import BadRequest


def default_state_dir() -> Path:
    """Where the runner keeps runs and caches when nothing is configured: the user's state folder (XDG)."""
    base = os.environ.get("XDG_STATE_HOME") or str(Path.home() / ".local" / "state")
    return Path(base) / "quark-ptq-runner"


class _Section(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True)


class QuarkSettings(_Section):
    """The quantization interpreter and the entry point."""

    python: Path = Field(Path(sys.executable), description="Interpreter that has torch, transformers and amd-quark.")
    checkout: Path | None = Field(None, description="A Quark checkout, for its quantize_quark.py.")
    script: Path | None = Field(None, description="A quantization script of the site, in a folder of its own.")
    entry_point: Literal["auto", "quantize_quark", "quark_cli", "own", "site"] = "auto"

    @model_validator(mode="after")
    def _site_has_a_script(self) -> QuarkSettings:
        if self.entry_point == "site" and self.script is None:
            raise ValueError("entry_point site needs quark.script, the path of the site's script")
        return self


class ModelSettings(_Section):
    """Where models may come from."""

    roots: list[Path] = []
    hub: bool = False
    hub_timeout_seconds: float = Field(30.0, gt=0, le=300, description="For one answer of the Hub.")


class OutputSettings(_Section):
    """Where quantized models may go, and who may read them."""

    roots: list[Path] = []
    mode: str = Field("0640", pattern=r"^0?[0-7]{3}$", description="File mode of output files, octal.")

    @field_validator("mode", mode="before")
    @classmethod
    def _octal(cls, value: object) -> object:
        # YAML reads an unquoted 0640 as the number 416: 0o640 was meant.
        return f"{value:04o}" if isinstance(value, int) else value


class DatasetSettings(_Section):
    """The local mirror of calibration and evaluation data, and how much of it a plan takes when nobody says."""

    mirror: Path | None = None
    num_calib_data: int | None = Field(None, ge=1, le=1_000_000, description="Samples.")
    seq_len: int | None = Field(None, ge=1, le=1_048_576, description="Tokens of one sample.")


class GpuSettings(_Section):
    """Which GPUs runs may use, and when one counts as free."""

    visible: list[str] | None = Field(None, description="Indexes, UUIDs or bus addresses; without it: all.")
    per_run: int = Field(1, ge=1, description="GPUs that a run gets whose plan takes several; others get one.")
    mask: Literal["auto", "ROCR_VISIBLE_DEVICES"] = Field(
        "auto", description="The variable that hides other GPUs from a run; ROCR_VISIBLE_DEVICES takes UUIDs (ROCm)."
    )
    lease_dir: Path = Field(
        Path("/var/tmp/quark-ptq-gpus"), description="Of this host, the same for all daemons on it: who has which GPU."
    )
    idle_bytes: int = Field(
        300_000_000 + 2**30, ge=0, description="A GPU with more memory in use than this is busy: baseline and 1 GiB."
    )
    settle_seconds: float = Field(60.0, ge=0, description="How long to wait for the memory of a GPU after its run.")


class LimitSettings(_Section):
    """Bounds that keep the daemon responsive. Bytes and seconds."""

    request_bytes: int = Field(8 * 2**20, ge=1024)
    grace_seconds: float = Field(10.0, ge=0, description="Between TERM and KILL when a run is cancelled.")
    probe_seconds: float = Field(300.0, gt=0, description="For one probe of the quantization interpreter.")
    check_seconds: float = Field(1800.0, gt=0, description="For loading a quantized model again after its run.")
    run_seconds: float | None = Field(None, gt=0, description="The longest that a run may take; without it: no limit.")
    run_memory_bytes: int | None = Field(None, ge=2**20, description="Main memory of a run; without it: no limit.")
    cpu_runs: int = Field(1, ge=1, description="Runs on the CPU that may compute at the same time.")
    log_bytes: int = Field(2**30, ge=65536, description="Disk space of a run's log; above it the middle is cut out.")
    disk_reserve_bytes: int = Field(2**30, ge=0, description="Free space that a run must leave.")
    queue: int = Field(100, ge=1, description="Runs that may wait.")


class SlurmSettings(_Section):
    """How runs are handed to Slurm. The state folder, models and results lie on a file system that its nodes share."""

    partition: str | None = None
    account: str | None = None
    qos: str | None = None
    gres: str = Field("gpu", description='The kind of GPU to ask for, without its number: "gpu", "gpu:mi300x".')
    cpus: int | None = Field(None, ge=1, description="CPUs of one run.")
    memory: str | None = Field(None, pattern=r"^\d+[KMGT]?$", description='Main memory of one run, as in "64G".')
    at_once: int = Field(100, ge=1, description="Runs that may lie with Slurm at the same time.")
    look_seconds: float = Field(2.0, gt=0, le=60, description="Between two looks at the list of jobs.")
    extra: list[str] = Field([], description="More arguments for sbatch.")


class TlsSettings(_Section):
    """Certificate and key (PEM) with which the API listens on https."""

    certificate: Path
    key: Path


# What an HTTP header carries unchanged, and long enough that nobody guesses it.
_TOKEN = re.compile(r"[!-~]{16,512}")
_TCP = ("http://", "https://")
_LABEL = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


class RunnerSettings(BaseSettings):
    """All settings of the runner; every path is absolute after reading."""

    model_config = SettingsConfigDict(
        env_prefix="PTQ_RUNNER_", env_nested_delimiter="__", extra="forbid", frozen=True, populate_by_name=True
    )

    listen: str = Field(
        "", description="unix:///path, https://host:port or http://host:port; default: a socket in state_dir."
    )
    token: str | None = Field(None, repr=False, description="What callers on TCP have to send; 16 characters or more.")
    state_dir: Path = Field(default_factory=default_state_dir)
    quark: QuarkSettings = QuarkSettings()
    models: ModelSettings = ModelSettings()
    outputs: OutputSettings = OutputSettings()
    datasets: DatasetSettings = DatasetSettings()
    gpus: GpuSettings = GpuSettings()
    engine: Literal["local", "slurm"] = "local"
    slurm: SlurmSettings = SlurmSettings()
    tls: TlsSettings | None = None
    labels: list[str] = Field([], description='By which people may choose this runner, as in "on mi300x".')
    limits: LimitSettings = LimitSettings()
    remote_code: bool = False

    @field_validator("token")
    @classmethod
    def _token_fits_a_header(cls, token: str | None) -> str | None:
        if token is not None and not _TOKEN.fullmatch(token):
            raise ValueError("a token is 16 to 512 ASCII letters, digits and marks on one line, without spaces")
        return token

    @field_validator("labels")
    @classmethod
    def _labels_can_be_said(cls, labels: list[str]) -> list[str]:
        for place, label in enumerate(labels):
            if not _LABEL.fullmatch(label):
                raise ValueError(
                    "a label is 1 to 64 letters, digits, dots, lines and underscores, and begins with the former two"
                )
            if label.lower() in {other.lower() for other in labels[:place]}:
                raise ValueError(f"{label} stands there twice")
        return labels

    @field_validator("listen")
    @classmethod
    def _listen_is_an_address(cls, listen: str) -> str:
        if not listen:
            return listen
        if any(not letter.isprintable() for letter in listen):
            raise ValueError("it has invisible characters")
        if listen.startswith("unix://"):
            if not listen.removeprefix("unix://").startswith("/"):
                raise ValueError("a unix socket is named by its whole path, as in unix:///run/ptq/runner.sock")
        elif not (listen.startswith(_TCP) and _host_of(listen)):
            raise ValueError("listen must be unix:///path, https://host:port or http://host:port")
        return listen

    @model_validator(mode="after")
    def _listen_is_safe(self) -> RunnerSettings:
        if self.listen.startswith(_TCP) and not self.token:
            raise ValueError("listen on TCP needs a token, since everybody who reaches the port could start runs")
        if self.listen.startswith("https://") and self.tls is None:
            raise ValueError("listen on https needs tls with a certificate and its key")
        if self.tls is not None and not self.listen.startswith("https://"):
            raise ValueError("tls is for listen on https://host:port, and would do nothing here")
        return self

    @property
    def listen_url(self) -> str:
        """Where the API listens."""
        return self.listen or f"unix://{self.state_dir / 'runner.sock'}"

    @property
    def socket_path(self) -> Path | None:
        """The unix socket, or None where the API listens on TCP."""
        return Path(self.listen_url.removeprefix("unix://")) if self.listen_url.startswith("unix://") else None

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],  # noqa: ARG003
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,  # noqa: ARG003
        file_secret_settings: PydanticBaseSettingsSource,  # noqa: ARG003
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Variables win over the file, whose content arrives as the initial values."""
        return env_settings, init_settings


def load_settings(file: Path | None) -> RunnerSettings:
    """Read runner.yaml and the environment. Raises BadRequest with one line that names the wrong setting."""
    values = _read_yaml(file) if file else {}
    where = file or "the environment"
    try:
        settings = _absolute(RunnerSettings(**values))
    except ValidationError as problem:
        first = problem.errors()[0]
        setting = ".".join(str(part) for part in first["loc"]) or "settings"
        why = first["msg"].removeprefix("Value error, ")
        raise BadRequest("bad_setting", f"{setting} in {where} is wrong: {why}.") from None
    except SettingsError as problem:  # a variable that has to be JSON
        raise BadRequest("bad_setting", f"A setting in {where} is wrong: {' '.join(str(problem).split())}.") from None
    if misplaced := script_misplaced(settings):
        raise BadRequest("bad_setting", f"quark.script in {where} is wrong: {misplaced}.")
    return settings


def script_misplaced(settings: RunnerSettings) -> str | None:
    """Why the site's script must not lie where it does, as a sentence without its full stop; None when it may.

    Its whole folder goes into every run. A checkout stays as it was published, and whoever may write models, results
    or datasets must not thereby write programs.
    """
    script = settings.quark.script
    if script is None:
        return None
    folder = Path(os.path.realpath(script)).parent
    checkout, mirror = settings.quark.checkout, settings.datasets.mirror
    places = [
        *(("the Quark checkout", place) for place in ([checkout] if checkout else [])),
        *(("a folder of models", place) for place in settings.models.roots),
        *(("a folder of results", place) for place in settings.outputs.roots),
        *(("the dataset mirror", place) for place in ([mirror] if mirror else [])),
        ("the runner's state folder", settings.state_dir),
    ]
    for what, place in places:
        real = Path(os.path.realpath(place))
        if real == folder or real in folder.parents:
            return f"{script} lies in {what} {place}"
        if folder in real.parents:
            return f"the folder of {script} also holds {what} {place}"
    return None


def _host_of(url: str) -> str | None:
    """The host of an address. Raises ValueError where it is none, or its port is no port."""
    parts = urlsplit(url)
    bare = "@" not in parts.netloc and not (parts.path.strip("/") or parts.query or parts.fragment)
    return parts.hostname if parts.port and bare else None  # both ends have to mean the same port


def _read_yaml(file: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadRequest("bad_setting", f"The configuration {file} cannot be read: {error.strerror}.") from None
    except RecursionError:
        raise BadRequest("bad_setting", f"The configuration {file} is nested too deeply.") from None
    except (yaml.YAMLError, ValueError) as error:  # ValueError: not UTF-8, or a date that no calendar has
        line = str(error).replace("\n", " ")
        raise BadRequest("bad_setting", f"The configuration {file} is not YAML: {line}.") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise BadRequest("bad_setting", f"The configuration {file} has to be a mapping of settings.")
    for key in content:
        if str(key) not in RunnerSettings.model_fields:  # the library would take some others as orders to itself
            raise BadRequest("bad_setting", f"{str(key)[:80]} in {file} is no setting of the runner.")
    return {str(key): value for key, value in content.items()}


def _absolute(settings: RunnerSettings) -> RunnerSettings:
    """Make paths absolute without resolving links: a virtual environment's interpreter is known by its link."""

    def full(path: Path) -> Path:
        try:
            path = path.expanduser()
        except RuntimeError:
            raise BadRequest("bad_setting", f"{path.parts[0]} in the setting {path} is nobody's home folder.") from None
        if not str(path).isprintable():
            raise BadRequest("bad_setting", f"The path {str(path)!r} in the settings has invisible characters.")
        return Path(os.path.abspath(path))  # noqa: PTH100 - resolve() would follow links

    quark = settings.quark
    tls = settings.tls
    updates: dict[str, Any] = {
        "state_dir": full(settings.state_dir),
        "tls": tls and tls.model_copy(update={"certificate": full(tls.certificate), "key": full(tls.key)}),
        "quark": quark.model_copy(
            update={
                "python": full(quark.python),
                "checkout": full(quark.checkout) if quark.checkout else None,
                "script": full(quark.script) if quark.script else None,
            }
        ),
        "models": settings.models.model_copy(update={"roots": [full(root) for root in settings.models.roots]}),
        "gpus": settings.gpus.model_copy(update={"lease_dir": full(settings.gpus.lease_dir)}),
        "outputs": settings.outputs.model_copy(update={"roots": [full(root) for root in settings.outputs.roots]}),
        "datasets": settings.datasets.model_copy(
            update={"mirror": full(settings.datasets.mirror) if settings.datasets.mirror else None}
        ),
    }
    return settings.model_copy(update=updates)
