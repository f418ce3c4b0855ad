"""A trial of many hours through the whole stack, with its stream played as fast as the worker takes it."""

import os
import shutil
import sys
import time
from pathlib import Path

from webapp.local import demo, processes, services
from webapp.local.console import Trouble, step
from webapp.local.state import State

LOOK_EVERY_S = 0.5
LIMIT_S = 1800.0
PLAYER = Path(__file__).with_name("long_fio.py")


def watch(state: State, *, hours: float) -> list[int]:
    """The worker's resident bytes, looked at twice a second from the trial's first second to its end."""
    state.prepare()
    _stand_in_for_fio(state.root / "bin")
    demo.bring_up(state)
    seconds = int(hours * 3600)
    run = _start(seconds)
    found: list[int] = []
    with step(f"a trial of {hours:g} hours"):
        until = time.monotonic() + LIMIT_S
        while _open(run):
            record = processes.known(state, services.WORKER)
            if record is None or time.monotonic() > until:
                raise Trouble("The trial did not come to its end.")
            if _samples(run):
                found.append(_resident_bytes(record.pid))
            time.sleep(LOOK_EVERY_S)
    if _samples(run) != seconds:
        raise Trouble(f"{_samples(run)} samples were kept of {seconds}: {[t.reason for t in run.trials.all()]}")  # type: ignore[attr-defined]
    return found


def _stand_in_for_fio(folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    program = folder / "fio"
    program.write_text(f'#!/bin/sh\nexec {sys.executable} {PLAYER} {shutil.which("fio")} "$@"\n')
    program.chmod(0o755)
    os.environ["PATH"] = f"{folder}:{os.environ['PATH']}"


def _start(seconds: int) -> object:
    from webapp.hosts.models import Target
    from webapp.plans.document import Part, PlanDocument
    from webapp.plans.services import create_plan
    from webapp.runs.services import start_run

    factors = {"pattern": "randread", "block_size": "4k", "iodepth": "4", "size": "16m", "runtime": f"{seconds}s"}
    document = PlanDocument(title="Long", parts=(Part(name="a", factors=factors),), repeats=1)
    version = create_plan(document=document, by=None).versions.get()
    return start_run(version=version, targets=[Target.objects.get(slug="scratch", in_policy=True)], by=None)


def _open(run: object) -> bool:
    from webapp.runs.models import OPEN_RUN_STATES

    run.refresh_from_db()  # type: ignore[attr-defined]
    return run.state in OPEN_RUN_STATES  # type: ignore[attr-defined]


def _samples(run: object) -> int:
    from webapp.results.models import Sample

    return Sample.objects.filter(attempt__run=run).count()  # type: ignore[misc]


def _resident_bytes(pid: int) -> int:
    """VmRSS of proc(5), in bytes."""
    status = Path(f"/proc/{pid}/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))
