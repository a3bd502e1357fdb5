"""`ptq-bot check`: configuration, database, runners and platforms, each with what is wrong and what to do."""

from __future__ import annotations

import asyncio
import contextlib
import os
from dataclasses import asdict, dataclass
from typing import Any

from bot.cards.texts import line
from bot.errors import BotError
from bot.service.policy import policy_of
from bot.service.runner_client import Look, RunnerClient, Runners
from bot.settings import BotSettings
from bot.store.database import check
from bot.store.sqlite import location


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    fit: bool
    message: str
    hint: str = ""

    def line(self) -> str:
        """For a person."""
        return line(f"{'ok  ' if self.fit else 'FAIL'}  {self.what}: {self.message} {self.hint}".rstrip())

    def as_json(self) -> dict[str, Any]:
        """For a program."""
        return asdict(self)


def examine(settings: BotSettings) -> list[Finding]:
    """Look at everything once. Nothing is changed."""
    findings = [Finding("configuration", True, f"state in {settings.state_dir}"), _database(settings)]
    findings.extend(
        Finding("approvals", False, contradiction) for contradiction in policy_of(settings).contradictions()
    )
    findings.extend(asyncio.run(_runners(settings)))
    web = settings.web
    if web.enabled:
        who = "with tokens" if web.token or web.people else f"for this machine only, as {web.person}"
        findings.append(Finding("page", True, f"http://{web.host}:{web.port}/ {who}"))
    for name, section in (("slack", settings.slack), ("discord", settings.discord)):
        if section is not None:
            hint = f"Take {name} out of the settings."
            findings.append(Finding(name, False, "this release speaks to people only through its page.", hint))
    return findings


def _database(settings: BotSettings) -> Finding:
    try:
        path = location(settings.database_url)
        if path.exists() and not (os.access(path, os.W_OK) and os.access(path.parent, os.W_OK | os.X_OK)):
            return Finding("database", False, f"{path} may not be written.", "Give the bot's user write access to it.")
        if path.exists():
            return Finding("database", True, f"{path} at revision {check(path)}.")
        if settings.database is not None and not path.parent.is_dir():
            return Finding(
                "database", False, f"the folder {path.parent} is not there.", "Make it, or correct `database`."
            )
        place = next(folder for folder in path.parents if folder.exists())
        if not (place.is_dir() and os.access(place, os.W_OK | os.X_OK)):
            hint = "Give the bot's user write access, or name another state_dir."
            return Finding("database", False, f"{path} cannot be made: {place} may not be written.", hint)
        return Finding("database", True, f"{path} will be made when the bot starts.")
    except BotError as error:
        return Finding("database", False, error.message, error.hint)


async def _runners(settings: BotSettings) -> list[Finding]:
    clients = [
        RunnerClient(runner.name, runner.url, runner.token.get_secret_value() if runner.token else None, ca=runner.ca)
        for runner in settings.runners
    ]
    runners = Runners(clients)
    try:
        return [await _runner(runners.get(look.name), look) for look in await runners.look()]
    finally:
        with contextlib.suppress(BotError):
            await runners.close()


async def _runner(client: RunnerClient, look: Look) -> Finding:
    what = f"runner {look.name}"
    if look.trouble is not None or look.health is None:
        trouble = look.trouble
        return Finding(what, False, trouble.message if trouble else "no answer", trouble.hint if trouble else "")
    try:
        offer = await client.capabilities(fresh=True)
    except BotError as error:
        return Finding(what, False, error.message, error.hint)
    versions = offer.catalogue.versions
    said = f"release {look.health.version}, Quark {versions.quark}, torch {versions.torch}, "
    return Finding(what, True, f"{said}{len(offer.catalogue.schemes)} schemes, {look.health.active} runs active.")
