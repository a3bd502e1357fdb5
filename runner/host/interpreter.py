"""The quantization interpreter, asked through child processes.

The daemon never imports torch or the engine: two probes run in the interpreter that has them. The quick one tells
versions in a tenth of a second; the slow one imports the engine, which takes up to a minute, and its answer is kept on
disk for as long as interpreter, packages and probe are the same.
"""

from __future__ import annotations

import asyncio
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

import runner
from runner.errors import Broken, Refused, RunnerError
from runner.host.child import ChildResult, probe_environment, run_child, with_programs_of
from runner.host.interpreter_facts import InterpreterFacts, read_algorithm_configs, read_catalogue
from runner.host.kernel_cache import remove_left_locks
from runner.host.sealed import read_sealed, write_sealed
from schemas.catalog import Catalogue

FRESH_SECONDS = 30.0
_QUICK_PROBE_SECONDS = 60.0
_PTQ = Path(runner.__file__).resolve().parent / "ptq"
_LONGEST_MODULES = 16_000_000
_MOST_MEMORY_BYTES = 8 * 2**30  # of the module probe: config.json may ask for a billion layers
_MODEL_NOT_MADE = 1  # exit status of the module probe
_NEEDED = {"amd-quark": "amd-quark", "torch": "torch", "transformers": "'transformers>5'"}

Answer = TypeVar("Answer")


class Interpreter:
    """One quantization interpreter. Concurrent callers share one probe of each kind.

    `cache_dir` keeps catalogues; it may be emptied at any time. `timeout_seconds` is the limit for the slow probe.
    Errors are Broken: interpreter_missing, interpreter_broken, quark_missing, torch_missing, transformers_missing,
    engine_broken, probe_timeout. Probes that import the engine run one after the other: each takes 0.6 GB.
    """

    def __init__(
        self,
        python: Path,
        cache_dir: Path,
        timeout_seconds: float = 300.0,
        *,
        probes: Path = _PTQ,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.python = python
        self._cache_dir = cache_dir
        self._timeout = timeout_seconds
        self._environment_probe = probes / "environment_probe.py"
        self._catalogue_probe = probes / "catalogue_probe.py"
        self._module_probe = probes / "module_probe.py"
        self._one_engine = asyncio.Lock()
        self._clock = clock
        self._running: dict[str, asyncio.Task[Any]] = {}
        self._facts: tuple[float, InterpreterFacts] | None = None
        self._document: tuple[str, dict[str, Any]] | None = None
        self._catalogue: tuple[str, Catalogue] | None = None
        self._failed: tuple[str, float, RunnerError] | None = None

    @property
    def known_catalogue(self) -> Catalogue | None:
        """The catalogue as it was last found, without looking again; None before the first time."""
        return self._catalogue[1] if self._catalogue else None

    async def warm(self) -> RunnerError | None:
        """Get the catalogue ready; what is wrong is returned, since a daemon starts all the same."""
        try:
            await self.catalogue()
        except RunnerError as problem:
            return problem
        return None

    async def facts(self, *, force: bool = False) -> InterpreterFacts:
        """Versions and build of what is installed, at most FRESH_SECONDS old; with `force` looked up now."""
        if self._facts and not force and self._clock() - self._facts[0] < FRESH_SECONDS:
            return self._facts[1]
        # A probe that runs already may have looked before the caller's change, so a forced one waits for a new one.
        if force and (running := self._running.get("facts")):
            await asyncio.wait([running])
        return await self._shared("facts", self._probe_facts)

    async def catalogue(self, *, force: bool = False) -> Catalogue:
        """What the installed engine offers. `force` looks at the installed versions now, not at an old answer."""
        facts = await self.facts(force=force)
        key = self._key(facts)
        if self._catalogue is None or self._catalogue[0] != key:
            document = await self._documented(facts, key)
            self._catalogue = (key, self._read(document, facts))
        return self._catalogue[1]

    async def algorithm_configs(self) -> dict[str, dict[str, dict[str, Any]]]:
        """Model type -> algorithm -> the engine's built-in configuration, as `--quant_algo_config_file` takes it."""
        facts = await self.facts()
        return read_algorithm_configs(await self._documented(facts, self._key(facts)))

    async def modules(self, files: Mapping[str, bytes], *, trust_remote_code: bool) -> Any:
        """The module probe's document of a model that has these files: config.json, and its code where that is run.

        Not kept here, but concurrent callers with the same files share one probe. Raises Refused [modules_not_built]
        where the engine cannot make the model.
        """
        facts = await self.facts()
        self._check_packages(facts)
        key = self.modules_key(files, facts, trust_remote_code=trust_remote_code)
        return await self._shared(
            f"modules {key}", lambda: self._probe_modules(files, facts, trust_remote_code=trust_remote_code)
        )

    def modules_key(self, files: Mapping[str, bytes], facts: InterpreterFacts, *, trust_remote_code: bool) -> str:
        """What the document of `modules` depends on, as a short digest."""
        try:
            probe = self._module_probe.read_bytes()
        except OSError:
            probe = b""
        digests = {name: hashlib.sha256(content).hexdigest() for name, content in files.items()}
        versions = {"python": facts.python, **{name: facts.packages.get(name) for name in sorted(_NEEDED)}}
        parts = [digests, versions, hashlib.sha256(probe).hexdigest(), trust_remote_code]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]

    async def _shared(self, kind: str, probe: Callable[[], Awaitable[Answer]]) -> Answer:
        """Run a probe, or join the one of that kind that runs. A cancelled caller does not stop it for the others."""
        task = self._running.get(kind)
        if task is None or task.done():
            task = asyncio.ensure_future(_awaited(probe))
            self._running[kind] = task
            task.add_done_callback(lambda done: self._forget(kind, done))
        answer: Answer = await asyncio.shield(task)
        return answer

    def _forget(self, kind: str, task: asyncio.Task[Any]) -> None:
        if self._running.get(kind) is task:
            del self._running[kind]
        if not task.cancelled():
            task.exception()  # looked at, so that a failed probe whose callers all left is not reported as unseen

    async def _probe_facts(self) -> InterpreterFacts:
        began = self._clock()
        result = await self._run(self._environment_probe, [], _QUICK_PROBE_SECONDS)
        if result.status != 0:
            raise Broken(
                "interpreter_broken",
                f"The interpreter {self.python} failed to say what it has installed: {_ending(result)}",
                "Check quark.python in runner.yaml; it has to be a Python of version 3.11 or later.",
            )
        try:
            facts = InterpreterFacts.model_validate_json(result.output.strip().rpartition("\n")[2])
        except ValidationError:
            raise Broken(
                "interpreter_broken",
                f"{self.python} answered with something that is not a list of packages.",
                "Check quark.python in runner.yaml; it has to be a Python interpreter.",
            ) from None
        self._facts = (began, facts)
        return facts

    async def _documented(self, facts: InterpreterFacts, key: str) -> dict[str, Any]:
        """The catalogue probe's document: remembered, from disk, or asked for now."""
        if self._document and self._document[0] == key:
            return self._document[1]
        if self._failed and self._failed[0] == key and self._clock() - self._failed[1] < FRESH_SECONDS:
            raise self._failed[2]  # importing the engine again would take a minute and fail the same way
        self._check_packages(facts)
        document = await asyncio.to_thread(self._from_disk, key, facts)
        if document is None:
            try:
                document = await self._shared(f"catalogue {key}", lambda: self._probe_catalogue(facts, key))
            except RunnerError as problem:
                self._failed = (key, self._clock(), problem)
                raise
        self._document = (key, document)
        return document

    def _check_packages(self, facts: InterpreterFacts) -> None:
        for package, requirement in _NEEDED.items():
            if facts.packages.get(package) is None:
                raise Broken(
                    f"{package.removeprefix('amd-')}_missing",
                    f"The interpreter {self.python} has no {package}.",
                    f"Install it: {self.python} -m pip install {requirement}; or set quark.python in runner.yaml.",
                )

    async def _probe_catalogue(self, facts: InterpreterFacts, key: str) -> dict[str, Any]:
        with self._place() as place:
            output = place / "catalogue.json"
            result = await self._run_engine(self._catalogue_probe, ["--output", str(output)])
            if result.status != 0:
                raise Broken(
                    "engine_broken",
                    f"amd-quark {facts.quark} cannot be loaded in {self.python}: {_ending(result)}",
                    f"See what `{self.python} -c 'import quark.torch'` says, and repair that installation.",
                )
            try:
                document = json.loads(output.read_bytes())
            except (OSError, ValueError, RecursionError):
                document = None
        self._read(document, facts)
        await asyncio.to_thread(write_sealed, self._cache_file(key), document)
        kept: dict[str, Any] = document
        return kept

    async def _probe_modules(
        self, files: Mapping[str, bytes], facts: InterpreterFacts, *, trust_remote_code: bool
    ) -> Any:
        with self._place() as place:
            model, output = place / "model", place / "modules.json"
            await asyncio.to_thread(_write_all, model, files)
            trust = ["--trust_remote_code"] if trust_remote_code else []
            arguments = ["--model_dir", str(model), "--output", str(output), *trust]
            arguments += ["--memory_bytes", str(_MOST_MEMORY_BYTES)]
            result = await self._run_engine(self._module_probe, arguments)
            if result.status == _MODEL_NOT_MADE:
                raise Refused(
                    "modules_not_built",
                    f"amd-quark {facts.quark} cannot say which modules this model has: {_ending(result)}",
                    "The analysis by headers stands; see whether config.json fits the installed transformers "
                    f"{facts.transformers}.",
                )
            if result.status != 0:
                raise Broken(
                    "engine_broken",
                    f"amd-quark {facts.quark} in {self.python} could not list the model's modules: {_ending(result)}",
                    f"See what `{self.python} -c 'import quark.torch'` says, and repair that installation.",
                )
            try:
                content = output.read_bytes() if output.stat().st_size <= _LONGEST_MODULES else b""
                return json.loads(content)
            except (OSError, ValueError, RecursionError):
                return None  # whoever asked says that it is no list of modules

    async def _run_engine(self, probe: Path, arguments: list[str]) -> ChildResult:
        """Run a probe that imports the engine, when no other does."""
        async with self._one_engine:
            await asyncio.to_thread(remove_left_locks)  # the import would wait for them for ever
            return await self._run(probe, arguments, self._timeout)

    def _read(self, document: Any, facts: InterpreterFacts) -> Catalogue:
        try:
            return read_catalogue(document, facts.versions())
        except (ValueError, TypeError, KeyError, AttributeError):
            raise Broken(
                "engine_broken",
                f"amd-quark {facts.quark} in {self.python} described itself in a way that this runner cannot read.",
                "Install a version of amd-quark that this runner supports, or a newer runner.",
            ) from None

    async def _run(self, probe: Path, arguments: list[str], seconds: float) -> ChildResult:
        # An empty working directory: a stray torch.py where the daemon stands must not be imported.
        with self._place() as place:
            folder = place / "empty"
            folder.mkdir()
            environment = {**with_programs_of(self.python, probe_environment()), "TMPDIR": str(place)}
            try:
                return await run_child(
                    [str(self.python), str(probe), *arguments],
                    timeout_seconds=seconds,
                    environment=environment,
                    folder=folder,
                )
            except TimeoutError:
                raise Broken(
                    "probe_timeout",
                    f"{self.python} did not answer within {seconds:.0f} s.",
                    "Look what else the host is doing, or raise limits.probe_seconds in runner.yaml.",
                ) from None
            except OSError as error:
                raise Broken(
                    "interpreter_missing",
                    f"The interpreter {self.python} cannot be started: {error.strerror}.",
                    "Set quark.python in runner.yaml to a Python that has torch, transformers and amd-quark.",
                ) from None

    @contextmanager
    def _place(self) -> Iterator[Path]:
        """A folder for one probe and all that it writes, gone afterwards. What a killed daemon left is swept first."""
        places: Path | None = self._cache_dir / "probes"
        try:
            self._cache_dir.joinpath("probes").mkdir(parents=True, exist_ok=True)
            _sweep(self._cache_dir / "probes", 2 * max(self._timeout, _QUICK_PROBE_SECONDS))
        except OSError:
            places = None  # a cache that cannot be written costs time and nothing else
        with tempfile.TemporaryDirectory(prefix="probe-", dir=places, ignore_cleanup_errors=True) as folder:
            yield Path(folder)

    def _key(self, facts: InterpreterFacts) -> str:
        """What the catalogue depends on, as a short digest."""
        try:
            changed = os.stat(self.python).st_mtime_ns  # noqa: PTH116 - follows the link of a virtual environment
            probe = self._catalogue_probe.read_bytes()
        except OSError:
            changed, probe = 0, b""
        parts = [str(self.python), changed, facts.model_dump(mode="json"), hashlib.sha256(probe).hexdigest()]
        return hashlib.sha256(json.dumps(parts, sort_keys=True).encode()).hexdigest()[:32]

    def _cache_file(self, key: str) -> Path:
        return self._cache_dir / f"catalogue-{key}.json"

    def _from_disk(self, key: str, facts: InterpreterFacts) -> dict[str, Any] | None:
        """A kept document; None where there is none or where it is not what it has to be."""
        try:
            document = read_sealed(self._cache_file(key))
            read_catalogue(document, facts.versions())
        except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError):
            return None
        kept: dict[str, Any] = document
        return kept


def _sweep(places: Path, seconds: float) -> None:
    """Remove folders of probes that cannot run any more: none lives so long."""
    for place in places.iterdir():
        with suppress(OSError):
            if time.time() - place.lstat().st_mtime > seconds:
                shutil.rmtree(place, ignore_errors=True)


async def _awaited(probe: Callable[[], Awaitable[Answer]]) -> Answer:
    return await probe()


def _write_all(folder: Path, files: Mapping[str, bytes]) -> None:
    for name, content in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(content)


def _ending(result: ChildResult) -> str:
    line = result.last_line.rstrip(".")
    return f"{line}." if line else f"it ended with status {result.status}."
