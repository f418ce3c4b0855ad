"""Upgrades from one release to the next and back, with data in every table and a worker that measures.

Both releases are made in a clone of this repository by the commands of docs/how-to/releasing.md. The newer one has a
migration that adds a column and changes rows.
"""

import json
import os
import re
import shutil
import subprocess
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from dev.console import ToolError, step
from dev.release.migrations import HASHES
from dev.release.prepare import CHANGELOG, UNRELEASED, current_version
from dev.server_check import fill_tables
from dev.server_check.bare_debian import BareDebian
from dev.server_check.installed_server import CURRENT, SERVER, SERVER_SCRIPT, InstalledServer, expect
from dev.stack.state import REPOSITORY

HOST = "worker"
OLD, NEW, EDITED = "/root/old", "/root/new", "/root/edited"
RUN_LIMIT_S = 3600.0  # against what hangs, not against a slow machine
MODELS = "webapp/hosts/models.py"
# A column of the newer release, which a function of the migration fills.
FIELD = 'class Host(models.Model):\n    upgraded = models.CharField(max_length=3, default="no", db_default="no")\n'
FILL = """\
        migrations.RunPython(lambda apps, _: apps.get_model("hosts", "Host").objects.update(upgraded="yes")),
    ]
"""
POLICY = '[[target]]\nid = "scratch"\nkind = "directory"\npath = "/srv/scratch"\nmax_bytes = 1073741824\n'
PLAN = """\
title: Upgrade check
repeats: {repeats}
common: {{size: 4M, runtime: 5s, ioengine: psync}}
parts:
  - name: read
    factors: {{pattern: randread, block_size: 4k}}
"""
LOAD_PLAN = """\
import sys
from webapp.plans.services import create_plan
from webapp.plans.document import import_plan
print(create_plan(document=import_plan(sys.stdin.read()), by=None).slug)
"""
FILL_TABLES = f"""\
{Path(fill_tables.__file__).read_text()}
for model in own_models():
    fill(model)
"""
COUNTS = """\
import json
from django.apps import apps
own = [model for model in apps.get_models() if model.__module__.startswith("webapp.")]
print(json.dumps({model._meta.db_table: model._default_manager.count() for model in own}))
"""
TIDIED = ("core_change", "core_logintries")
TRIALS = """\
import json
from collections import Counter
from webapp.runs.models import Run
run = Run.objects.get(number=%d)
print(json.dumps({"run": run.state, **Counter(run.trials.values_list("state", flat=True))}))
"""
UPGRADED = f"""\
from webapp.hosts.models import Host
print(*Host.objects.filter(slug="{HOST}").values_list("upgraded", flat=True))
"""


@dataclass(frozen=True)
class Releases:
    old: Path
    new: Path
    migration: str  # of the newer release, such as hosts.0002_upgraded


def make_releases(folder: Path) -> Releases:
    """Two releases in new directories below `folder`. Raises ToolError."""
    clone = folder / "clone"
    with step("making two releases in a clone"):
        _call(folder, "git", "clone", "--quiet", str(REPOSITORY), str(clone))
        (clone / ".venv").symlink_to((REPOSITORY / ".venv").resolve())
        if HASHES.exists():
            _add_change(clone)
            _call(clone, ".venv/bin/python", "-m", "dev.release.prepare", _next(current_version()))
        else:
            _call(clone, ".venv/bin/python", "-m", "dev.release.squash")
            _call(clone, ".venv/bin/python", "-m", "dev.release.prepare", "1.0.0")
        old = _export(clone, folder / "old")
        text = (clone / MODELS).read_text()
        (clone / MODELS).write_text(text.replace("class Host(models.Model):\n", FIELD, 1))
        nowhere = {
            "SWEETSPOT_SECRET_KEY": "long enough for Django, and of no use to anybody: makemigrations only",
            "SWEETSPOT_DATABASE_URL": "postgres://nobody@/nothing?host=/nonexistent",
            "SWEETSPOT_REDIS_URL": "redis://nobody:nothing@127.0.0.1:1/0",
        }
        _call(clone, ".venv/bin/python", "manage.py", "makemigrations", "hosts", "--name", "upgraded", **nowhere)
        (path,) = (clone / "webapp/hosts/migrations").glob("*_upgraded.py")
        path.write_text(re.sub(r"    \]\n\Z", FILL, path.read_text()))
        _add_change(clone)
        (version,) = re.findall(r'"(.*)"', (old / "worker/__init__.py").read_text().splitlines()[-1])
        _call(clone, ".venv/bin/python", "-m", "dev.release.prepare", _next(version))
        return Releases(old, _export(clone, folder / "new"), f"hosts.{path.stem}")


def _add_change(clone: Path) -> None:
    changelog = clone / CHANGELOG.relative_to(REPOSITORY)
    changelog.write_text(changelog.read_text().replace(UNRELEASED, f"{UNRELEASED}\n- A change.\n", 1))


def _next(version: str) -> str:
    first, _, last = version.rpartition(".")
    return f"{first}.{int(last) + 1}"


def _export(clone: Path, folder: Path) -> Path:
    """Commit everything, and copy the commit's files."""
    folder.mkdir()
    _call(clone, "git", "add", "--all", "--", ":!.venv")
    author = ("-c", "user.name=check", "-c", "user.email=check@localhost")
    _call(clone, "git", *author, "commit", "--quiet", "--no-verify", "--message", "Release")
    _call(clone, "sh", "-c", 'git archive HEAD | tar -x -C "$1"', "sh", str(folder))
    return folder


def _call(folder: Path, *argv: str, **variables: str) -> None:
    environment = {**os.environ, "PYTHONPATH": str(folder), **variables}
    done = subprocess.run(argv, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise ToolError(f"{' '.join(argv)[:100]} failed:\n{(done.stdout + done.stderr)[-3000:]}")


class Upgrades(InstalledServer):
    def __init__(self, debian: BareDebian, releases: Releases) -> None:
        super().__init__(debian)
        self._migration = releases.migration
        for place, source in ((OLD, releases.old), (NEW, releases.new)):
            shutil.copytree(source, debian.root / place.lstrip("/"))
        for built in ("frontend", "frontend.done"):  # the container builds another one if it is of other sources
            self._copy_built(REPOSITORY / ".build" / built, debian.root / OLD.lstrip("/") / ".build" / built)
        self._old_release = ""
        self._backup_of_old = ""
        self._runs = 0

    @staticmethod
    def _copy_built(source: Path, target: Path) -> None:
        target.parent.mkdir(exist_ok=True)
        if source.is_dir():
            shutil.copytree(source, target)
        elif source.exists():
            shutil.copy(source, target)

    def run(self) -> None:
        for name, check in self.CHECKS.items():
            with step(name):
                check(self)

    def _install_old(self) -> None:
        self._run(f"{OLD}/{SERVER_SCRIPT}", "install", "sweetspot.test")
        self._run(SERVER, "manage", "create_admin", "admin")
        self._old_release = self._run("readlink", CURRENT).strip()
        # The newer release has the same front end and the same packages for workers.
        self._run(
            "sh", "-c", f"mkdir {NEW}/.build; cp -r {CURRENT}/.build/front* {CURRENT}/.build/wheelhouse {NEW}/.build"
        )
        self._run("sh", "-c", "apt-get update && apt-get install --yes --no-install-recommends fio")

    def _fill(self) -> None:
        """A host that measures gives most tables their rows; the others get one."""
        (self._debian.root / "etc/sweetspot-worker").mkdir()
        (self._debian.root / "etc/sweetspot-worker/policy.toml").write_text(POLICY)
        self._run("mkdir", "/srv/scratch")
        self._start_worker(self._enrol(HOST))
        self._measure()
        self._manage_shell(FILL_TABLES)
        expect("empty tables", [name for name, count in self._counts().items() if not count], [])

    def _start_run(self, repeats: int) -> int:
        """Start a run with so many trials, which take five seconds or longer. Return its number."""
        slug = self._manage_shell(LOAD_PLAN, stdin=PLAN.format(repeats=repeats)).splitlines()[-1]
        done = self._debian.run(SERVER, "manage", "run_plan", slug, "--host", HOST, "--target", "scratch")
        self._runs = int(re.findall(r"Run (\d+) of", done.stdout + done.stderr)[0])
        return self._runs

    def _measure(self) -> None:
        number = self._start_run(2)
        self._until("a run is done", lambda: self._trials(number)["run"] == "done", RUN_LIMIT_S)

    def _trials(self, number: int) -> dict[str, str]:
        trials: dict[str, str] = json.loads(self._manage_shell(TRIALS % number).splitlines()[-1])
        return trials

    def _done(self) -> int:
        return int(self._trials(self._runs).get("done", 0))

    def _counts(self) -> dict[str, int]:
        """Rows by table, without tables that are tidied every ten minutes."""
        counts: dict[str, int] = json.loads(self._manage_shell(COUNTS).splitlines()[-1])
        return {name: count for name, count in counts.items() if name not in TIDIED}

    def _upgrade(self) -> None:
        self._backup_of_old = self._run(SERVER, "backup").strip().rpartition(" ")[2]
        self._start_run(100)
        self._until("the worker measures", lambda: self._done() > 0, RUN_LIMIT_S)
        before = self._counts()
        said = self._run(f"{NEW}/{SERVER_SCRIPT}", "install")
        expect("the newer release runs", self._run("readlink", CURRENT).strip() != self._old_release, True)
        expect("ready", said.strip().splitlines()[-1].startswith("The server is ready"), True)
        after = self._counts()
        expect("tables with fewer rows", [name for name in before if before[name] > after[name]], [])
        expect("empty tables", [name for name, count in after.items() if not count], [])
        expect("rows that the migration changed", self._manage_shell(UPGRADED), "yes")

    def _old_worker(self) -> None:
        """The worker of the old release goes on with its run: no trial is lost, and no trial failed."""
        done = self._done()
        self._until("the old worker goes on", lambda: self._done() > done + 2, RUN_LIMIT_S)
        expect("trials that failed", self._trials(self._runs).get("failed", 0), 0)

    def _roll_back(self) -> None:
        """The run of the time before the upgrade goes on or ends with reasons, and the host measures again."""
        before = self._counts()
        self._run(SERVER, "roll-back")
        expect("the old release runs", self._run("readlink", CURRENT).strip(), self._old_release)
        expect("its tables", set(self._counts()), set(before))
        column = "select count(*) from information_schema.columns where column_name = 'upgraded'"
        count = f"from django.db import connection as c; k = c.cursor(); k.execute({column!r}); print(k.fetchone()[0])"
        expect("columns of the newer release", self._manage_shell(count), "0")
        self._until("the worker measures", lambda: self._done() > 0, RUN_LIMIT_S)
        self._manage_shell(
            f"from webapp.runs.models import Run; from webapp.runs.services import cancel_run;"
            f"cancel_run(run=Run.objects.get(number={self._runs}), by=None)"
        )
        self._measure()

    def _restore_old_backup(self) -> None:
        """The newer release takes a backup of the older one, and migrates it."""
        self._run(f"{NEW}/{SERVER_SCRIPT}", "install")
        self._run(SERVER, "restore", self._backup_of_old)
        expect("rows that the migration changed", self._manage_shell(UPGRADED), "yes")
        expect("empty tables", [name for name, count in self._counts().items() if not count], [])
        self._measure()

    def _refuse_new_backup(self) -> None:
        newer = self._run(SERVER, "backup").strip().rpartition(" ")[2]
        self._run("mv", newer, "/root/newer")
        self._run(SERVER, "roll-back")
        before = self._counts()
        self._refused(self._migration, SERVER, "restore", "/root/newer")
        expect("rows", self._counts(), before)

    def _refuse_edited_migration(self) -> None:
        self._run("cp", "-r", OLD, EDITED)
        (path,) = (self._debian.root / EDITED.lstrip("/") / "webapp/hosts/migrations").glob("0001_*.py")
        path.write_text(f"{path.read_text()}# edited\n")
        self._refused(f"hosts.{path.stem}", f"{EDITED}/{SERVER_SCRIPT}", "install")
        expect("the old release runs", self._run("readlink", CURRENT).strip(), self._old_release)

    def _refused(self, migration: str, *argv: str) -> None:
        done = self._debian.run(*argv, check=False)
        said = done.stdout + done.stderr
        if done.returncode == 0 or migration not in said:
            raise ToolError(f"{' '.join(argv)} was not refused because of {migration}:\n{said[-2000:]}")
        self._until("the server is ready", self._is_ready)

    CHECKS: ClassVar[Mapping[str, Callable[["Upgrades"], None]]] = {
        "installing the older release": _install_old,
        "data in every table": _fill,
        "upgrade during a run": _upgrade,
        "a worker of the older release goes on": _old_worker,
        "roll-back": _roll_back,
        "a backup of the older release in the newer one": _restore_old_backup,
        "a backup of the newer release is refused by the older one": _refuse_new_backup,
        "an edited migration is refused": _refuse_edited_migration,
    }
