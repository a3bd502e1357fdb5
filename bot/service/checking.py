"""`ptq-bot check`: configuration, database, runners and platforms, each with what is wrong and what to do."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

from bot.cards import amounts
from bot.cards.texts import line, some
from bot.conversation.words.vocabulary import sayable_labels
from bot.errors import BotError
from bot.service.policy import policy_of
from bot.service.runner_client import Look, RunnerClient, Runners
from bot.settings import BotSettings
from bot.settings.model import SlackSettings
from bot.store.database import check
from bot.store.sqlite import location
from schemas.api import Capabilities

_LONGEST = 800


@dataclass(frozen=True)
class Finding:
    """One thing that was looked at."""

    what: str
    fit: bool
    message: str
    hint: str = ""

    def line(self) -> str:
        """For a person."""
        return line(f"{'ok  ' if self.fit else 'FAIL'}  {self.what}: {self.message} {self.hint}".rstrip(), _LONGEST)

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
    if settings.slack is not None:
        findings.extend(_slack(settings.slack))
    if settings.discord is not None:
        hint = "Take discord out of the settings."
        findings.append(Finding("discord", False, "this release does not speak to people there.", hint))
    return findings


def _slack(settings: SlackSettings) -> list[Finding]:
    try:
        from bot.service.slack_check import look  # only whoever uses Slack has its libraries
    except ImportError as error:
        message = f"its libraries are not installed: {error}."
        return [Finding("slack", False, message, "Install quark-ptq-bot[slack].")]
    return [Finding(*told) for told in asyncio.run(look(settings))]


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
        looks = await runners.look()
        offers = await asyncio.gather(*(_runner(runners.get(look.name), look) for look in looks))
        named = {runner.name: runner.labels for runner in settings.runners}
        return [_finding(look, offer, named[look.name]) for look, offer in zip(looks, offers, strict=True)]
    finally:
        with contextlib.suppress(BotError):
            await runners.close()


async def _runner(client: RunnerClient, look: Look) -> Capabilities | BotError:
    """What it offers, or why that is not known."""
    if look.trouble is not None or look.health is None:
        return look.trouble or BotError("no_answer", "no answer")
    try:
        return await client.capabilities(fresh=True)
    except BotError as error:
        return error


def _finding(look: Look, offer: Capabilities | BotError, labels: Sequence[str]) -> Finding:
    what = f"runner {look.name}"
    if isinstance(offer, BotError) or look.health is None:
        named = f" Labels: {', '.join(labels)}." if labels else ""
        trouble = offer if isinstance(offer, BotError) else BotError("no_answer", "no answer")
        return Finding(what, False, f"{trouble.message}{named}", trouble.hint)
    versions, health = offer.catalogue.versions, look.health
    all_labels = dict.fromkeys([*labels, *sayable_labels(offer)])
    told = (
        f"release {health.version}, Quark {versions.quark}, torch {versions.torch}",
        f"{len(offer.catalogue.schemes)} schemes",
        gpus_in_words(offer),
        f"{health.active} runs active, {health.queued} waiting",
        f"models in {some(offer.model_roots, 4) or 'no folder'}",
        "the Hub" if offer.hub else "no Hub",
        "runs models' own code" if offer.remote_code else "",
        f"labels {some(all_labels, 8)}" if all_labels else "",
    )
    return Finding(what, True, f"{', '.join(part for part in told if part)}.")


def gpus_in_words(offer: Capabilities) -> str:
    """Its GPUs: "8 GPUs gfx942 of 206.1 GB"."""
    if not offer.gpu_count:
        return "no GPU" if offer.accelerator == "cpu" else "GPUs not known"
    archs = f" {some(offer.gpu_archs, 4)}" if offer.gpu_archs else ""
    memory = f" of {amounts.size(offer.gpu_memory_bytes)}" if offer.gpu_memory_bytes else ""
    return f"{amounts.count(offer.gpu_count, 'GPU')}{archs}{memory}"
