"""A checkout that does not fit the installed package is found out without running either."""

from __future__ import annotations

from pathlib import Path

import pytest

from runner.host.checkout import checkout_version, missing_names, unfit_entry_points
from runner.host.entry_points import IN_CHECKOUT
from runner.settings import QuarkSettings, RunnerSettings
from tests.runner.intake.engine import FACTS

SCRIPT = """
from quark.torch import ModelQuantizer, export_gguf
from quark.torch.utils import llm
from quark.torch.utils.llm import get_model
import quark.torch

def main():
    from quark.torch import only_when_needed
    get_model("m", device="cuda", {keyword}=True)
"""


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """An installed package."""
    folder = tmp_path / "site-packages" / "quark"
    (folder / "torch" / "utils" / "llm").mkdir(parents=True)
    (folder / "torch" / "__init__.py").write_text("from quark.torch.api import ModelQuantizer, export_gguf\n")
    (folder / "torch" / "utils" / "llm" / "__init__.py").write_text("from .loading import get_model\n")
    (folder / "torch" / "utils" / "llm" / "loading.py").write_text(
        "def get_model(name, device, *, trust=False):\n ...\n"
    )
    return folder


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """A checkout with a script that fits."""
    path = tmp_path / "Quark" / IN_CHECKOUT
    path.parent.mkdir(parents=True)
    path.write_text(SCRIPT.format(keyword="trust"))
    return tmp_path / "Quark"


def test_a_script_that_fits_is_not_suspected(checkout: Path, package: Path) -> None:
    assert missing_names(checkout, str(package)) == []


def test_a_name_that_the_package_lacks_is_found(checkout: Path, package: Path) -> None:
    (package / "torch" / "__init__.py").write_text("from quark.torch.api import ModelQuantizer\n")
    assert missing_names(checkout, str(package)) == ["quark.torch.export_gguf"]


def test_a_keyword_that_a_function_lacks_is_found(checkout: Path, package: Path) -> None:
    (checkout / IN_CHECKOUT).write_text(SCRIPT.format(keyword="processor"))
    assert missing_names(checkout, str(package)) == ["get_model(processor=)"]
    loading = package / "torch" / "utils" / "llm" / "loading.py"
    loading.write_text("def get_model(name, **anything):\n ...\n")
    assert missing_names(checkout, str(package)) == []


@pytest.mark.parametrize("text", ["", "def (", "\x00", "\udcff"])
def test_what_cannot_be_read_is_not_suspected(text: str, checkout: Path, package: Path) -> None:
    (checkout / IN_CHECKOUT).write_bytes(text.encode("utf-8", "surrogatepass"))
    assert missing_names(checkout, str(package)) == []
    assert missing_names(checkout, None) == []
    assert missing_names(checkout, "/nowhere/quark") == []


def test_the_version_is_read_where_it_stands(checkout: Path) -> None:
    assert checkout_version(checkout) is None
    (checkout / "quark").mkdir()
    (checkout / "quark" / "version.py").write_text("__version__ = '0.12'\ngit_version = 'abc'\n")
    assert checkout_version(checkout) == "0.12"


def test_a_checkout_that_does_not_fit_is_no_choice_of_auto(checkout: Path, package: Path) -> None:
    settings = RunnerSettings(quark=QuarkSettings(checkout=checkout))
    facts = FACTS.model_copy(update={"quark_path": str(package)})
    assert unfit_entry_points(settings, facts) == {}
    script = checkout / IN_CHECKOUT
    script.write_text("from quark.torch import a, b, c, d, e\n")
    (why,) = unfit_entry_points(settings, facts).values()
    assert why == (
        "needs quark.torch.a, quark.torch.b, quark.torch.c and 2 more, which the installed Quark does not have"
    )
    script.write_text("from quark.torch import ModelQuantizer\n")
    assert unfit_entry_points(settings, facts) == {}, "the script was changed, and is looked at again"


def test_what_nobody_can_compare_is_not_called_unfit(checkout: Path, package: Path) -> None:
    settings = RunnerSettings(quark=QuarkSettings(checkout=checkout))
    assert unfit_entry_points(settings, None) == {}
    assert unfit_entry_points(settings, FACTS) == {}
    assert unfit_entry_points(RunnerSettings(), FACTS.model_copy(update={"quark_path": str(package)})) == {}
    (checkout / IN_CHECKOUT).unlink()
    assert unfit_entry_points(settings, FACTS.model_copy(update={"quark_path": str(package)})) == {}
