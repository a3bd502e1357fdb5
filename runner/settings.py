"""runner.yaml and the environment variables PTQ_RUNNER_*.

A variable names a setting by its path, as in PTQ_RUNNER_QUARK__CHECKOUT, and wins over the file.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any, Literal

import yaml
from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator, model_validator
from pydantic_settings import BaseSettings, PydanticBaseSettingsSource, SettingsConfigDict

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
    entry_point: Literal["auto", "quantize_quark", "quark_cli", "own"] = "auto"


class ModelSettings(_Section):
    """Where models may come from."""

    roots: list[Path] = []
    hub: bool = False


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
    """The local mirror of calibration and evaluation data."""

    mirror: Path | None = None


class GpuSettings(_Section):
    """Which GPUs runs may use."""

    visible: list[str] | None = None
    per_run: int = Field(1, ge=1)


class LimitSettings(_Section):
    """Bounds that keep the daemon responsive. Bytes and seconds."""

    request_bytes: int = Field(8 * 2**20, ge=1024)
    grace_seconds: float = Field(10.0, ge=0, description="Between TERM and KILL when a run is cancelled.")
    probe_seconds: float = Field(300.0, gt=0, description="For one probe of the quantization interpreter.")
    check_seconds: float = Field(1800.0, gt=0, description="For loading a quantized model again after its run.")
    disk_reserve_bytes: int = Field(2**30, ge=0, description="Free space that a run must leave.")
    queue: int = Field(100, ge=1, description="Runs that may wait.")


class RunnerSettings(BaseSettings):
    """All settings of the runner; every path is absolute after reading."""

    model_config = SettingsConfigDict(
        env_prefix="PTQ_RUNNER_", env_nested_delimiter="__", extra="forbid", frozen=True, populate_by_name=True
    )

    listen: str = Field("", description="unix:///path or http://host:port; default: a socket in state_dir.")
    token: str | None = Field(None, repr=False)
    state_dir: Path = Field(default_factory=default_state_dir)
    quark: QuarkSettings = QuarkSettings()
    models: ModelSettings = ModelSettings()
    outputs: OutputSettings = OutputSettings()
    datasets: DatasetSettings = DatasetSettings()
    gpus: GpuSettings = GpuSettings()
    engine: Literal["local"] = "local"
    limits: LimitSettings = LimitSettings()
    remote_code: bool = False

    @model_validator(mode="after")
    def _listen_is_safe(self) -> RunnerSettings:
        if self.listen and not re.match(r"^(unix://|http://)", self.listen):
            raise ValueError("listen must begin with unix:// or http://")
        if self.listen.startswith("http://") and not self.token:
            raise ValueError("listen on TCP needs a token, since everybody who reaches the port could start runs")
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
    try:
        return _absolute(RunnerSettings(**values))
    except ValidationError as problem:
        first = problem.errors()[0]
        setting = ".".join(str(part) for part in first["loc"]) or "settings"
        where = file or "the environment"
        raise BadRequest("bad_setting", f"{setting} in {where} is wrong: {first['msg']}.") from None


def _read_yaml(file: Path) -> dict[str, Any]:
    try:
        content = yaml.safe_load(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadRequest("bad_setting", f"The configuration {file} cannot be read: {error.strerror}.") from None
    except (yaml.YAMLError, UnicodeDecodeError) as error:
        line = str(error).replace("\n", " ")
        raise BadRequest("bad_setting", f"The configuration {file} is not YAML: {line}.") from None
    if content is None:
        return {}
    if not isinstance(content, dict):
        raise BadRequest("bad_setting", f"The configuration {file} has to be a mapping of settings.")
    return {str(key): value for key, value in content.items()}


def _absolute(settings: RunnerSettings) -> RunnerSettings:
    """Make paths absolute without resolving links: a virtual environment's interpreter is known by its link."""

    def full(path: Path) -> Path:
        return Path(os.path.abspath(path.expanduser()))  # noqa: PTH100 - resolve() would follow links

    quark = settings.quark
    updates: dict[str, Any] = {
        "state_dir": full(settings.state_dir),
        "quark": quark.model_copy(
            update={"python": full(quark.python), "checkout": full(quark.checkout) if quark.checkout else None}
        ),
        "models": settings.models.model_copy(update={"roots": [full(root) for root in settings.models.roots]}),
        "outputs": settings.outputs.model_copy(update={"roots": [full(root) for root in settings.outputs.roots]}),
        "datasets": DatasetSettings(mirror=full(settings.datasets.mirror) if settings.datasets.mirror else None),
    }
    return settings.model_copy(update=updates)
