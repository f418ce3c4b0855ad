"""The built-in plan of iozone's phases through the whole system, with small files: three of its phases."""

from urllib.parse import parse_qsl, urlsplit

import pytest
from django.test import Client
from msgspec.structs import replace

from webapp.core.models import Role
from webapp.plans.document import import_plan
from webapp.plans.services import BUILTIN
from webapp.runs.models import RunState
from webapp.tests.factories.people import a_user
from webapp.tests.system import StorageHost, System
from worker.contract.workload import MIB

pytestmark = pytest.mark.pipeline
SIZE, THREADS = 4 * MIB, (1, 2)
PHASES = ("Write", "Read", "Re-read")


def test_each_thread_has_a_file_and_each_phase_a_row(system: System, storage: StorageHost) -> None:
    plan = import_plan((BUILTIN / "iozone-phases.yaml").read_text(encoding="utf-8"))
    small = plan.common | {"size": "4M", "numjobs": ", ".join(map(str, THREADS))}
    parts = tuple(part for part in plan.parts if part.name in PHASES)
    document = replace(plan, common=small, parts=parts, repeats=2)
    run = system.until_ended(system.start_run(document, storage.target("scratch")), limit_s=120)
    assert run.state == RunState.DONE, [(trial.state, trial.reason) for trial in run.trials.all()]
    assert set(run.results.values_list("trial__part", "bytes")) == {
        (phase, threads * SIZE) for phase in PHASES for threads in THREADS
    }
    client = Client()
    client.force_login(a_user("somebody", Role.VIEWER))
    response = client.get(f"/explore/?run={run.number}", follow=True)
    question = dict(parse_qsl(urlsplit(response.redirect_chain[-1][0]).query))
    assert (question["x"], question["series"], question.get("panel", "")) == ("numjobs", "part", "pattern")
