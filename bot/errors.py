"""What can go wrong in the bot.

BotError                code, message for the person, hint
├── BadSetting          bot.yaml or a variable is wrong
├── StoreError          the database cannot keep or give what was asked
│   ├── StoreBusy       another process holds it for too long
│   ├── StoreFull       the disk is full
│   ├── StoreReadOnly   it may not be written
│   └── StoreForeign    it is damaged, or of another release
│       └── RowUnreadable   one row of it is; all others are not
├── RunnerError         a runner answered with a problem: the request is at fault
├── RunnerAway          a runner cannot be reached, hangs or is broken: asking later may help
├── RunnerForeign       what answers is no runner of this release
├── PlatformError       a platform refused a delivery
│   ├── PlatformAway    for now: later may help
│   ├── SurfaceGone     the message or thread is not there any more
│   └── PlatformDenied  for good: a permission, scope or setting is missing
├── OutputTaken         another conversation writes to that folder
└── NotFound            something named is not known
"""

from __future__ import annotations


class BotError(Exception):
    """Something that a person is told in one sentence, with what to do next."""

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def sentence(self) -> str:
        """Message and hint as a person reads them."""
        return f"{self.message} {self.hint}".strip()


class BadSetting(BotError):
    """bot.yaml or a variable is wrong."""


class StoreError(BotError):
    """The database cannot keep or give what was asked."""


class StoreBusy(StoreError):
    """Another process holds the database for too long."""


class StoreFull(StoreError):
    """The disk is full."""


class StoreReadOnly(StoreError):
    """The database may not be written."""


class StoreForeign(StoreError):
    """The database is damaged, or of another release."""


class RowUnreadable(StoreForeign):
    """One row is damaged, or of another release; all others are not."""


class RunnerError(BotError):
    """A runner answered with a problem: the request is at fault."""


class RunnerAway(BotError):
    """A runner cannot be reached, hangs or is broken: asking later may help."""


class RunnerForeign(BotError):
    """What answers is no runner of this release."""


class PlatformError(BotError):
    """A platform refused a delivery."""


class PlatformAway(PlatformError):
    """For now. `seconds` is how long the platform asks to wait, when it says so."""

    def __init__(self, code: str, message: str, hint: str = "", seconds: float | None = None) -> None:
        super().__init__(code, message, hint)
        self.seconds = seconds


class SurfaceGone(PlatformError):
    """The message or thread is not there any more."""


class PlatformDenied(PlatformError):
    """For good: a permission, scope or setting is missing."""


class OutputTaken(BotError):
    """Another conversation writes to that folder."""


class NotFound(BotError):
    """Something named is not known."""
