"""Where PTQ_NO_SKIPS is set, everything that tests need is there: a test that skips all the same is a failure.

A test that is marked `optional` may: it asks a tool that is in no package of the distribution.
"""

from __future__ import annotations

import os

import pytest


@pytest.hookimpl(trylast=True)
def pytest_sessionfinish(session: pytest.Session) -> None:
    """Turn a run with skipped tests into a failed one."""
    reporter = session.config.pluginmanager.get_plugin("terminalreporter")
    skipped = getattr(reporter, "stats", {}).get("skipped", [])
    if (
        reporter is not None
        and os.environ.get("PTQ_NO_SKIPS")
        and any("optional" not in one.keywords for one in skipped)
    ):
        reporter.write_line("PTQ_NO_SKIPS is set, and some tests were skipped.", red=True)
        session.exitstatus = pytest.ExitCode.TESTS_FAILED
