"""bot.yaml and the environment variables PTQ_BOT_*: what an administrator decides."""

from bot.settings.file import load_settings
from bot.settings.model import BotSettings, DiscordSettings, RunnerAddress, SlackSettings, WebSettings

__all__ = ["BotSettings", "DiscordSettings", "RunnerAddress", "SlackSettings", "WebSettings", "load_settings"]
