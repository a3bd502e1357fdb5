"""Everything that touches the GPU host: facts, analysis, plans, commands, supervised runs, and the API over them."""

from importlib.metadata import version

__version__ = version("quark-ptq-bot")
