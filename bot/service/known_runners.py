"""The runners as far as they are known, for whoever has to choose one now: nobody is asked, and nobody waits."""

from __future__ import annotations

from bot.conversation.runner_choice import KnownRunner
from bot.conversation.words.vocabulary import sayable_labels
from bot.service.runner_client import RunnerClient, Runners
from bot.settings import BotSettings


def known_runners(settings: BotSettings, runners: Runners) -> tuple[KnownRunner, ...]:
    """All of them, in the order of the settings."""
    labels = {runner.name: tuple(runner.labels) for runner in settings.runners}
    return tuple(_known(client, labels.get(client.name, ())) for client in runners)


def labels_of(settings: BotSettings, runners: Runners) -> frozenset[str]:
    """What people may say instead of a runner's name."""
    return frozenset(label for one in known_runners(settings, runners) for label in one.labels)


def _known(client: RunnerClient, labels: tuple[str, ...]) -> KnownRunner:
    offer, health = client.known_capabilities, client.known_health
    return KnownRunner(
        name=client.name,
        labels=tuple(dict.fromkeys([*labels, *(sayable_labels(offer) if offer is not None else ())])),
        offer=offer,
        queued=health.queued if health is not None else None,
        active=health.active if health is not None else 0,
        away=client.known_trouble is not None,
    )
