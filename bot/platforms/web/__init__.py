"""The bot's own page: every thread of every platform, drawn from the database at each load."""

from bot.platforms.web.adapter import WebPlatform
from bot.platforms.web.app import make_app
from bot.platforms.web.identity import Access, access
from bot.platforms.web.library import Library
from bot.platforms.web.live import Live

__all__ = ["Access", "Library", "Live", "WebPlatform", "access", "make_app"]
