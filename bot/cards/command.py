"""Checkpoint 3: the exact command, and what it is bound to."""

from __future__ import annotations

import shlex

from bot.cards import amounts
from bot.cards.blocks import because_notes, command_line, fields, make_card, note, notes, paragraph, table
from bot.cards.buttons import Buttons
from bot.cards.card import Block, Card, Note, Tone
from bot.cards.texts import Exact, exact, last_part, line, plain, some
from bot.conversation.state import ReviewingCommand
from schemas.artifacts.manifest import RunManifest
from schemas.artifacts.plan import Severity
from schemas.catalog import Versions
from schemas.digest import short

FILE = "run_manifest.yaml"
"""The name under which the whole document is attached."""

QUESTION = "Shall I run this exact command?"

_FILES = 12
_VARIABLES = 30
_DEVIATIONS = 20


def command_card(conversation: int, state: ReviewingCommand, manifest: RunManifest, approvers: str = "") -> Card:
    """The command letter by letter, and all that a yes is bound to. `state.because` says why it is offered again.

    `approvers` is the sentence of who may approve it; empty where that needs no saying.
    """
    buttons = Buttons.of(conversation, state)
    shown = exact(shlex.join(manifest.argv))
    output = manifest.outputs.output_dir
    where = f" on {plain(state.request.runner)}" if state.request.runner else ""
    run_it = buttons.approve("Run it", confirm=line(f"This starts the run{where}. It writes to {plain(output)}.", 280))
    name = last_part(manifest.inputs.model_path)
    asked = f"{QUESTION} {approvers}".strip()
    return make_card(
        QUESTION,
        Tone.WAITING,
        [
            *because_notes(state.because),
            *notes("Who decides", [note(Severity.WARNS, approvers)] if approvers else ()),
            command_line(shown.text, state.manifest.digest),
            *notes("Look closely", _doubts(state, manifest, shown)),
            _bound(state, manifest),
            *_variables(manifest),
            *_deviations(manifest),
            paragraph(f"Checkpoint 3 of 4: {asked[0].lower()}{asked[1:]}"),
        ],
        f"{asked} It quantizes {name} to {line(state.plan.scheme, 60)} and writes to {line(output, 120)}.",
        buttons=(run_it, buttons.edit(), buttons.cancel()),
    )


def _bound(state: ReviewingCommand, manifest: RunManifest) -> Block:
    entry, inputs = manifest.entry_point, manifest.inputs
    reason = f": {plain(entry.reason)}" if entry.reason else ""
    revision = f", revision {plain(inputs.model_revision)}" if inputs.model_revision else ""
    return fields(
        ("Output folder", manifest.outputs.output_dir),
        ("Expected files", some(manifest.outputs.expected_files, _FILES)),
        ("Model", f"{plain(inputs.model_path)}{revision}, {amounts.count(len(manifest.model_files), 'file')}"),
        ("Entry point", f"{entry.name}{reason}"),
        ("Script", f"{plain(entry.path)}, SHA-256 {short(entry.sha256)}"),
        ("Beside the script", _beside(manifest)),
        ("Versions", _versions(manifest.versions)),
        ("Secrets", f"{some(manifest.secrets)} (only the names are known here)" if manifest.secrets else "none"),
        ("GPU", "chosen by the runner at the start"),
        ("Working folder", "made by the runner at the start"),
        ("Runner", state.request.runner),
        ("Revision of this command", f"{state.manifest.number}, digest {short(state.manifest.digest)}"),
    )


def _versions(versions: Versions) -> str:
    found = {
        "Python": versions.python,
        "torch": versions.torch,
        "transformers": versions.transformers,
        "Quark": versions.quark,
    }
    return ", ".join(f"{name} {plain(version) if version else 'unknown'}" for name, version in found.items())


def _variables(manifest: RunManifest) -> tuple[Block, ...]:
    if not manifest.environment:
        return ()
    rows = [(exact(name).text, exact(value).text) for name, value in manifest.environment.items()]
    caption = "Environment variables that the run always gets"
    return (table(("Variable", "Value"), rows, caption=caption, at_most=_VARIABLES),)


def _beside(manifest: RunManifest) -> str | None:
    """Other files in the folder of a site's script: each is bound like the script itself."""
    files = manifest.entry_point.files
    return some((f"{name} (SHA-256 {short(sha256)})" for name, sha256 in files.items()), _FILES) or None


def _deviations(manifest: RunManifest) -> tuple[Block, ...]:
    """Where the command is not what the published workflow writes, and why."""
    if not manifest.deviations:
        return ()
    rows = [(exact(one.flag).text, one.reason) for one in manifest.deviations]
    caption = "Where this command differs from the published workflow"
    return (table(("Option", "Why"), rows, caption=caption, at_most=_DEVIATIONS),)


def _doubts(state: ReviewingCommand, manifest: RunManifest, shown: Exact) -> list[Note]:
    """What a person may overlook in the command, and what weighs most in it."""
    found = []
    if shown.hidden:
        told = amounts.count(shown.hidden, "character")
        found.append(
            note(
                Severity.WARNS,
                f"This command has {told} that cannot be seen as they are. Above, they are written out, such as "
                "\\u202e, and each backslash is written twice.",
                "Do not run it unless you know where they come from.",
            )
        )
    if any(exact(text).hidden for pair in manifest.environment.items() for text in pair):
        found.append(note(Severity.WARNS, "A variable has characters that cannot be seen; they are written out below."))
    if shown.foreign:
        letters = some((f"{plain(letter)} (U+{ord(letter):04X})" for letter in shown.foreign), 10)
        found.append(note(Severity.INFORMS, f"Letters beyond plain ASCII, which may look like others: {letters}."))
    if manifest.command != shlex.join(manifest.argv):
        message = (
            "The manifest's text of the command differs from its argument list. Shown is the list, which would run."
        )
        found.append(note(Severity.WARNS, message, "Tell who looks after the runner."))
    if state.plan.remote_code:
        found.append(note(Severity.WARNS, "This run may execute code that the model brings along.", "Read it first."))
    if manifest.blocked_by:
        found.append(note(Severity.WARNS, f"The manifest says what stops it: {some(manifest.blocked_by)}."))
    return found
