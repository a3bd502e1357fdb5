"""Whether a manifest still says what this runner would do, and whether people approved exactly that.

A manifest is derived again from the analysis and the plan that it carries, and compared piece by piece, so that a
refusal says what changed. What a manifest says of itself is never believed.
"""

from __future__ import annotations

from collections.abc import Iterable

from runner.errors import Changed, DigestMismatch, Refused
from runner.intake.comparison import check_files, first_difference, first_of
from runner.intake.files import differences
from runner.manifest.build import make_manifest
from runner.manifest.context import ManifestContext
from schemas.api import Approval, ApprovedCheckpoint
from schemas.artifacts.manifest import RunManifest
from schemas.catalog import Versions
from schemas.digest import digest, short

_NEW_MANIFEST = "A new manifest is needed; it asks for approval of the command again."
_NAMES: dict[ApprovedCheckpoint, str] = {
    "analysis": "checkpoint 1 (the analysis)",
    "plan": "checkpoint 2 (the plan)",
    "command": "checkpoint 3 (the command)",
}


def check(manifest: RunManifest, context: ManifestContext) -> None:
    """Refuse a manifest that is not, piece by piece, what this runner derives from its analysis and plan now.

    Raises DigestMismatch [analysis_changed, plan_changed] for documents that are not those of the digests beside them;
    Changed [model_changed, dataset_changed, runner_changed, script_changed, command_changed, manifest_changed]; and
    whatever makes a manifest impossible now (plan_blocked, entry_point_missing, ...).
    """
    _check_maker(manifest, context)
    _check_documents(manifest)
    _check_versions(manifest.versions, context.versions)
    check_files(manifest.model_files, context.model_files)
    _check_datasets(manifest, context)
    inputs = manifest.inputs
    derived = make_manifest(inputs.model_analysis, inputs.quant_plan, manifest.outputs.output_dir, context)
    _check_entry_point(manifest, derived)
    _check_arguments(manifest.argv, derived.argv)
    _check_environment(manifest, derived)
    _check_rest(manifest, derived)


def check_approvals(manifest: RunManifest, approvals: Iterable[Approval]) -> None:
    """Refuse a run without a yes to its analysis, its plan and its command, each for exactly this document.

    Several people may have said yes to the same document. A yes to another one is refused and not passed over: who sent
    it may not know that the document changed. Raises Refused [approval_missing], DigestMismatch [approval_outdated].
    """
    wanted: dict[ApprovedCheckpoint, str] = {
        "analysis": digest(manifest.inputs.model_analysis),
        "plan": digest(manifest.inputs.quant_plan),
        "command": digest(manifest),
    }
    given = list(approvals)
    for checkpoint, exact in wanted.items():
        of_this = [approval for approval in given if approval.checkpoint == checkpoint]
        if not of_this:
            raise Refused(
                "approval_missing",
                f"Nobody approved {_NAMES[checkpoint]}.",
                "A run needs approvals of checkpoints 1, 2 and 3.",
            )
        outdated = next((approval for approval in of_this if approval.digest != exact), None)
        if outdated is not None:
            raise DigestMismatch(
                "approval_outdated",
                f"{outdated.by} approved {short(outdated.digest)} at {_NAMES[checkpoint]}, and this is {short(exact)}.",
                "Show the current one and ask again.",
            )


def _check_maker(manifest: RunManifest, context: ManifestContext) -> None:
    if manifest.made_by != context.made_by:
        raise Changed(
            "runner_changed",
            f"The manifest was made by {manifest.made_by}, and this is {context.made_by}.",
            _NEW_MANIFEST,
        )


def _check_documents(manifest: RunManifest) -> None:
    inputs = manifest.inputs
    for name, document, said in (
        ("analysis", inputs.model_analysis, inputs.analysis_digest),
        ("plan", inputs.quant_plan, inputs.plan_digest),
    ):
        found = digest(document)
        if found != said:
            raise DigestMismatch(
                f"{name}_changed",
                f"The {name} in the manifest is {short(found)}, not the {short(said)} that it was made for.",
                _NEW_MANIFEST,
            )


def _check_versions(before: Versions, now: Versions) -> None:
    was, is_now = before.model_dump(), now.model_dump()
    changed = [f"{name} {was[name] or 'none'} -> {is_now[name] or 'none'}" for name in was if was[name] != is_now[name]]
    if changed:
        raise Changed("runner_changed", f"The quantization interpreter changed: {', '.join(changed)}.", _NEW_MANIFEST)


def _check_datasets(manifest: RunManifest, context: ManifestContext) -> None:
    sentences = differences(manifest.dataset_files, context.dataset_files)
    if sentences:
        raise Changed("dataset_changed", f"The calibration data changed: {first_of(sentences)}", _NEW_MANIFEST)


def _check_entry_point(manifest: RunManifest, derived: RunManifest) -> None:
    before, now = manifest.entry_point, derived.entry_point
    if before.name != now.name:
        raise Changed("runner_changed", f"The entry point was {before.name} and is now {now.name}.", _NEW_MANIFEST)
    if before.sha256 != now.sha256:
        raise Changed(
            "script_changed",
            f"The script of {now.name} is {short(now.sha256)}, not the {short(before.sha256)} that was approved.",
            _NEW_MANIFEST,
        )
    for file in sorted({*before.files, *now.files}):
        if before.files.get(file) != now.files.get(file):
            both = file in before.files and file in now.files
            what = "another one than was approved" if both else "new" if file in now.files else "gone"
            raise Changed("script_changed", f"{file} beside the script of {now.name} is {what}.", _NEW_MANIFEST)
    if before.path != now.path:
        raise Changed("runner_changed", f"The entry point moved from {before.path} to {now.path}.", _NEW_MANIFEST)


def _check_arguments(before: list[str], now: list[str]) -> None:
    if before == now:
        return
    place = next((i for i, (old, new) in enumerate(zip(before, now, strict=False)) if old != new), None)
    if place is None:
        place = min(len(before), len(now))
    flag = next((f" (after {argument})" for argument in reversed(now[:place]) if argument.startswith("--")), "")
    old, new = (repr(argv[place]) if place < len(argv) else "nothing" for argv in (before, now))
    raise Changed(
        "command_changed",
        f"The command is not the one that the plan gives: argument {place}{flag} is {old} and should be {new}.",
        _NEW_MANIFEST,
    )


def _check_environment(manifest: RunManifest, derived: RunManifest) -> None:
    before, now = manifest.environment, derived.environment
    name = next((name for name in sorted({*before, *now}) if before.get(name) != now.get(name)), None)
    if name is not None:
        raise Changed(
            "runner_changed",
            f"The variable {name} is {before.get(name, 'absent')} in the manifest and {now.get(name, 'absent')} here.",
            _NEW_MANIFEST,
        )
    if manifest.secrets != derived.secrets:
        raise Changed("runner_changed", "The run would see other secrets than the manifest names.", _NEW_MANIFEST)


def _check_rest(manifest: RunManifest, derived: RunManifest) -> None:
    """Everything else. Files were compared by their content: a file that was only touched is the same file."""
    same_files = {"model_files": manifest.model_files, "dataset_files": manifest.dataset_files}
    expected = derived.model_copy(update=same_files).model_dump(mode="json")
    difference = first_difference(manifest.model_dump(mode="json"), expected, "run_manifest")
    if difference is not None:
        raise Changed(
            "manifest_changed",
            f"{difference.path} in the manifest is not what this runner writes there.",
            _NEW_MANIFEST,
        )
