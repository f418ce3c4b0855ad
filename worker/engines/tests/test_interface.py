"""What the rest of the worker knows about engines: their registry and their interface."""

import re
from pathlib import Path
from types import SimpleNamespace

import pytest

import worker
from worker import engines, recipes
from worker.contract.base import Workload
from worker.contract.inventory import EngineOffer
from worker.engines import ENGINES
from worker.engines.base import Check, State

ROOT = Path(worker.__file__).parent
# The registries, prefill and steps (which use fio for every engine), and the format of histograms.
MAY_NAME_FIO = {
    "client/plans.py",  # reads job files of fio
    "engines/__init__.py",
    "engines/file_copy/program.py",
    "recipes/__init__.py",
    "recipes/steps.py",
}


def test_every_engine_checks_itself_and_identifies_its_installation() -> None:
    for engine in ENGINES.values():
        checks = list(engine.check())
        assert checks
        assert all(isinstance(check, Check) and check.state is State.OK for check in checks)
        assert engine.installation() == engine.installation() != ""


def test_only_the_registries_and_prefill_name_an_engine() -> None:
    paths = [path.relative_to(ROOT) for path in ROOT.rglob("*.py")]
    own = ("engines/fio/", "recipes/fio/", "contract/")
    others = [path for path in paths if "tests" not in path.parts and not str(path).startswith(own)]
    naming = {str(path) for path in others if re.search(r"\bfio\b", (ROOT / path).read_text(), re.IGNORECASE)}
    assert naming == MAY_NAME_FIO


class NapWorkload(Workload, tag="nap", frozen=True):
    """Of an engine that only this test has."""


def test_a_registered_engine_is_offered_checked_and_asked_for_by_its_label(monkeypatch: pytest.MonkeyPatch) -> None:
    offer = EngineOffer(version="9.1", features=())
    nap = SimpleNamespace(offer=lambda: offer, check=lambda: [Check("nap", State.OK, "")], installation=lambda: "9.1")
    recipe = SimpleNamespace(LABEL="Nap")
    monkeypatch.setattr(engines, "ENGINES", {NapWorkload: nap})
    monkeypatch.setattr(recipes, "ENGINES", {NapWorkload: recipe})
    assert engines.capabilities(settings=()).engines == {"nap": offer}
    assert recipes.missing_features(NapWorkload(), {}) == ["engine Nap"]
