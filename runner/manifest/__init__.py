"""A confirmed plan to the exact command; one module per entry point."""

from runner.manifest.binding import check as check
from runner.manifest.binding import check_approvals as check_approvals
from runner.manifest.build import make_manifest as make_manifest
from runner.manifest.content import ContentStore as ContentStore
from runner.manifest.context import ManifestContext as ManifestContext

__all__ = ["ContentStore", "ManifestContext", "check", "check_approvals", "make_manifest"]
