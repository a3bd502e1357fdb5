"""Everything that talks to people: the conversation, its cards and its platforms. It speaks HTTP to the runner."""

from importlib.metadata import version

__version__ = version("quark-ptq-bot")
