"""What can go wrong in the runner.

RunnerError                 code, message for the person, hint
├── Refused                 the request is understood and must not be done
│   ├── BadRequest          a document or value is not what it has to be; says where
│   │   └── TooLarge        a request is larger than this runner reads
│   ├── DigestMismatch      approved one thing, asked for another
│   ├── Changed             model, script, versions or settings differ from what was approved
│   ├── OutsideRoots        a path leaves the folders that runner.yaml allows
│   └── Conflict            another run holds what this one needs, or its state forbids this
├── NotHere                 something named does not exist on this host
└── Broken                  the host or the engine failed; the request is not at fault
"""

from __future__ import annotations

from typing import ClassVar


class RunnerError(Exception):
    """An error that a person reads: a short code for programs, one sentence, and what to do next."""

    status: ClassVar[int] = 500

    def __init__(self, code: str, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.message} {self.hint}".strip()


class Refused(RunnerError):
    """The request is understood and must not be done."""

    status = 422


class BadRequest(Refused):
    """A document or value is not what it has to be; the message says where."""

    status = 400


class TooLarge(BadRequest):
    """A request is larger than this runner reads."""

    status = 413


class DigestMismatch(Refused):
    """What was approved is not what is asked for."""

    status = 409


class Changed(Refused):
    """Model, script, versions or settings differ from what was approved."""

    status = 409


class OutsideRoots(Refused):
    """A path leaves the folders that runner.yaml allows."""

    status = 403


class Conflict(Refused):
    """Another run holds what this one needs, or the state of the thing forbids this."""

    status = 409


class NotHere(RunnerError):
    """Something named does not exist on this host."""

    status = 404


class Broken(RunnerError):
    """The host or the engine failed; the request is not at fault."""

    status = 503
