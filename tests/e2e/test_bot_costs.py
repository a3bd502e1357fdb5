"""What the bot takes of its machine while nothing happens."""

from __future__ import annotations

from pathlib import Path

from tests.e2e.bot_host import running_pair

_MOST_BYTES = 200_000_000


def test_an_idle_bot_with_its_page_is_small(tmp_path: Path) -> None:
    with running_pair(tmp_path) as pair:
        thread = pair.ask("quantize tiny to fp8")
        pair.wait_for(thread, "reviewing_analysis")
        for _ in range(20):
            assert "tiny" in pair.page(thread)
        assert pair.daemon is not None
        status = Path(f"/proc/{pair.daemon.pid}/status").read_text()
        resident = int(next(line for line in status.splitlines() if line.startswith("VmRSS")).split()[1]) * 1024
        assert resident < _MOST_BYTES, f"{resident / 1e6:.0f} MB"
        assert "torch" not in Path(f"/proc/{pair.daemon.pid}/maps").read_text()
