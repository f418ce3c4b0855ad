"""An engine that only these tests have goes from a plan to results, registered in the four registries and nowhere else.

The tables that are made from the registries when modules are loaded (factors, columns, dimensions) get its factor here;
a real engine is registered before they are made.
"""

from collections.abc import Mapping
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest
from django.test import Client

from webapp.analysis import dimensions
from webapp.core.models import Role
from webapp.hosts.models import Target
from webapp.plans import engines
from webapp.plans.document import Part, PlanDocument
from webapp.plans.engines.fio import FACTORS as FIO_FACTORS
from webapp.plans.factors import FACTORS
from webapp.plans.grids import document_problems
from webapp.plans.preview import jobs_of, preview
from webapp.plans.services import create_plan
from webapp.plans.setting_rows import Factor
from webapp.plans.values import Choice, Duration, Value
from webapp.runs import durations
from webapp.runs.dispatch import orders
from webapp.runs.models import Attempt, AttemptState, Run, RunState
from webapp.runs.models import run as run_models
from webapp.runs.services import start_run
from webapp.screens.results import columns
from webapp.tests.factories.hosts import CAPABILITIES, a_host, storage1_scratch
from webapp.tests.factories.people import a_user
from webapp.tests.factories.reports import run_to_the_end
from worker import recipes
from worker.contract.base import Workload
from worker.contract.workload import CopyWorkload, FioWorkload
from worker.recipes.base import Recipe

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker", "naps")]
PLAN = PlanDocument(title="Naps", parts=(Part(name="main", factors={"engine": "nap", "nap": "1s, 2s"}),), repeats=1)


class NapWorkload(Workload, tag="nap", frozen=True, kw_only=True):
    """Reads for a while."""

    runtime_s: int
    direct = True
    writes = False
    words = "nap"
    write_share = 0.0
    moved_bytes = None
    largest_io_bytes = 4096
    space_bytes = 0
    features = ("soft",)

    @property
    def time_s(self) -> int:
        return self.runtime_s


RECIPE = SimpleNamespace(
    LABEL="Nap",
    METRICS=(),
    DEFAULT_METRIC="latency_p99",
    INSTALLATION="Install Debian's package coreutils.",
    problems=lambda work, kind: (),
    feature_words=lambda feature: f"{feature} naps",
    render=lambda stream: Recipe(f"sleep {stream.workload.runtime_s}\n", ("sh", "-s"), ()),
)


def workload(point: Mapping[str, Value], *, seed: int) -> NapWorkload:
    return NapWorkload(runtime_s=int(point["nap"] or 0), seed=seed, prefill=False)


NAP = Factor("nap", "Nap time", Duration(low=1), unit="s", example="1s")
IN_PLANS: Any = SimpleNamespace(
    WORKLOAD=NapWorkload,
    LABEL=RECIPE.LABEL,
    DEFAULT_METRIC=RECIPE.DEFAULT_METRIC,
    FACTORS=(NAP, next(factor for factor in FIO_FACTORS if factor.name == "drop_caches")),
    REQUIRED="nap",
    ALTERNATIVES=(),
    SILENT_BY="",
    CHART_BY="",
    SERIES_BY="nap",
    DIRECTIONS_BY="",
    NAMED_BY={"nap": "nap of {}"},
    PHRASES={"nap": "for {}"},
    silent=lambda point: (),
    workload=workload,
    kind=lambda point: (),
    time_s=lambda levels: sum(levels["nap"]) / len(levels["nap"]),
)


@pytest.fixture
def naps(monkeypatch: pytest.MonkeyPatch) -> None:
    """The four registries without the worker's, which `worker/engines/tests/test_interface.py` registers."""
    for module in (run_models, durations):
        monkeypatch.setattr(module, "AnyWorkload", FioWorkload | CopyWorkload | NapWorkload)
    monkeypatch.setitem(recipes.ENGINES, NapWorkload, RECIPE)  # type: ignore[misc]  # a key of another kind than before
    monkeypatch.setitem(engines.ENGINES, "nap", IN_PLANS)
    for factor in (replace(FACTORS["engine"], values=Choice(tuple(engines.ENGINES))), NAP):
        monkeypatch.setitem(FACTORS._listed, factor.name, factor)  # type: ignore[attr-defined]
        monkeypatch.setitem(columns.COLUMNS, factor.name, columns._factor(factor.name))
        dimension = dimensions.FactorDimension(factor.name, factor.label, factor.numeric)
        monkeypatch.setitem(dimensions.DIMENSIONS, factor.name, dimension)


@pytest.fixture
def target() -> Target:
    offers = {"engines": {"nap": {"version": "9.1", "features": ["soft"]}}}
    return storage1_scratch(a_host("storage1", capabilities=CAPABILITIES | offers))


def test_it_is_planned_previewed_and_estimated(target: Target) -> None:
    assert document_problems(PLAN) == ()
    made = preview(PLAN, [target])
    assert made.expansion.problems == ()
    assert {trial.point["nap"] for trial in made.expansion.trials} == {1, 2}
    assert made.estimate.seconds == pytest.approx(1 + 2 + 2 * 0.4)
    texts = [job.recipe.job_text for trial in made.expansion.trials for job in jobs_of(trial, {str(target.pk): target})]
    assert sorted(texts) == ["sleep 1\n", "sleep 2\n"]


def test_it_is_ordered_measured_and_shown(target: Target) -> None:
    person = a_user("olga", Role.OPERATOR)
    plan = create_plan(document=PLAN, by=person)
    run = start_run(version=plan.versions.get(), targets=[target], by=person)
    for _ in range(2):
        attempt = Attempt.objects.get(run=run, state=AttemptState.DISPATCHED, trial__isnull=False)
        assert attempt.trial is not None
        (stream,) = orders.streams_of(attempt.trial, attempt.host_id)
        assert msgspec.json.decode(msgspec.json.encode(stream))["workload"]["engine"] == "nap"
        run_to_the_end(target.host, attempt)
    Run.objects.filter(pk=run.pk).update(state=RunState.DONE)
    client = Client()
    client.force_login(person)
    assert "Nap · for 1 s, 2 s" in client.get("/plans/naps/").content.decode()
    assert "nap of 2 s" in client.get(f"/runs/{run.number}/").content.decode()
    assert "nap of " in client.get(f"/runs/{run.number}/trials/1/").content.decode()
    table = client.get(f"/results/?run={run.number}").content.decode()
    assert "Nap time" in table
    assert table.index("sort=-latency_p99") < table.index("sort=-iops")
    assert "metric=latency_p99" in client.get(f"/explore/?run={run.number}")["Location"]
    hosts = client.get("/hosts/").content.decode()
    assert "Nap 9.1" in hosts
    assert "fio is not installed on this host" in hosts
