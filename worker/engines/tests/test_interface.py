"""What the rest of the worker knows about engines: their registry and their interface."""

import re
from pathlib import Path

import worker
from worker.checks import Check, State
from worker.engines import ENGINES

ROOT = Path(worker.__file__).parent
# The registries, prefill (which uses fio for every engine), and the format of histograms.
MAY_NAME_FIO = {
    "engines/__init__.py",
    "engines/file_copy/program.py",
    "engines/prefill.py",
    "recipes/__init__.py",
    "recipes/prefill.py",
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
