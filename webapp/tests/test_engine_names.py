"""Code asks engines and recipes, and decides nothing by the name of an engine."""

import re
from pathlib import Path

import webapp

ROOT = Path(webapp.__file__).parent.parent
OWN = (
    "webapp/plans/engines/",  # each engine's module, and the registry
    "webapp/plans/jobfile/",  # fio's own file format
    "webapp/imports/",  # reads what fio, as any other tool, wrote
)
MAY_NAME_ONE = {
    "webapp/plans/load.py",  # a factor of fio that the server resolves
    "webapp/api/plans.py",  # exports and imports job files
    "webapp/screens/plans/views.py",
}
_ENGINES = "fio|file_copy|pgbench|sysbench|sysbench_oltp|idle|memory_bandwidth|array_action"
_WORKLOADS = "Fio|Copy|Pgbench|Sysbench|Oltp|Idle|Memory|ArrayAction"
NAMES = re.compile(
    rf"""(?P<quote>["'])({_ENGINES})(?P=quote)"""  # a name
    rf"""|\b({_WORKLOADS})Workload\b"""
    rf"""|(engines|recipes)(\.({_ENGINES})\b|\ import\ .*\b({_ENGINES})\b)"""  # a module
    r"""|engines\.fio\b""",  # in a template
)


def _naming(folder: str, *endings: str) -> set[str]:
    paths = [path for ending in endings for path in (ROOT / folder).rglob(f"*.{ending}")]
    names = {str(path.relative_to(ROOT)): path for path in paths if "tests" not in path.parts}
    others = {name: path for name, path in names.items() if not name.startswith(OWN) and "/migrations/" not in name}
    return {name for name, path in others.items() if NAMES.search(path.read_text())}


def test_only_engines_and_job_files_name_an_engine() -> None:
    assert _naming("webapp", "py", "html") <= MAY_NAME_ONE
    assert _naming("frontend/src", "ts") == set()


def test_the_allowed_files_exist() -> None:
    assert all((ROOT / name).exists() for name in (*OWN, *MAY_NAME_ONE))
