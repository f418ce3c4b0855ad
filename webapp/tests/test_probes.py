"""/healthz and /metrics: right, short, and silent about what is nobody's business."""

import re
from datetime import timedelta
from typing import Any
from unittest.mock import Mock

import pytest
from django.conf import settings
from django.core.management import call_command
from django.db import OperationalError, connection, transaction
from django.db.models.functions import Now
from django.test import Client, override_settings
from django.test.utils import CaptureQueriesContext
from django.utils import timezone

from webapp import probes
from webapp.beat import Scheduler
from webapp.celery import app
from webapp.core import health, tally
from webapp.core.models import Counter, Heartbeat
from webapp.core.services import count, counted
from webapp.core.tests.targets import targets
from webapp.hosts.models import Target
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.models import TrialState
from webapp.runs.states import transition_trial
from webapp.runs.tasks import tick as tick_runs
from webapp.schedules.tasks import tick as tick_schedules
from webapp.tests.factories.hosts import a_drive, a_host, a_host_with_token, a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.reports import ACCEPTED, STARTED, sample, say
from webapp.tests.factories.runs import a_run
from webapp.tests.threads import at_once
from worker.contract.inventory import QUARANTINED

WITHOUT_PANEL: set[str] = set()  # metrics that the dashboard deliberately leaves out

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


@pytest.fixture(autouse=True)
def _own_tally() -> None:
    tally.forget()


def tick() -> None:
    health.note(health.BEAT)
    tick_runs()
    tick_schedules()


def metrics(**extra: Any) -> dict[str, float]:
    answer = Client().get("/metrics", **extra)
    assert answer.status_code == 200, answer.content
    lines = [line for line in answer.content.decode().splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def test_it_is_ready_when_everything_is_there() -> None:
    tick()
    answer = Client().get("/healthz")
    assert answer.status_code == 200
    parts = {"database": True, "migrations": True, "broker": True, "beat": True, "tasks": True}
    assert answer.json() == {"status": "ok", "parts": parts, "warnings": []}
    assert "no-store" in answer["Cache-Control"]


def test_it_is_not_ready_without_broker_and_says_no_address() -> None:
    tick()
    with override_settings(REDIS_URL="redis://sweetspot:secret-password@127.0.0.1:1/0"):
        answer = Client().get("/healthz")
        assert Client().get("/healthz/live").status_code == 200
    assert answer.status_code == 503
    parts = {"database": True, "migrations": True, "broker": False, "beat": True, "tasks": True}
    assert answer.json()["parts"] == parts
    assert b"127.0.0.1" not in answer.content
    assert b"secret" not in answer.content


def test_it_is_not_ready_while_a_migration_is_missing() -> None:
    with connection.cursor() as cursor:
        cursor.execute("UPDATE django_migrations SET app = 'not ' || app WHERE app = 'hosts'")
        try:
            answer = Client().get("/healthz")
        finally:
            cursor.execute("UPDATE django_migrations SET app = 'hosts' WHERE app = 'not hosts'")
    assert (answer.status_code, answer.json()["parts"]["migrations"]) == (503, False)


@pytest.mark.parametrize(
    ("age_s", "why"), [(None, "never ran"), (75, "s ago"), (-7200, "ahead of the database's clock")]
)
def test_it_is_not_ready_while_no_tick_runs(caplog: pytest.LogCaptureFixture, age_s: int | None, why: str) -> None:
    """Beat or the Celery worker is dead, was never started, or its last sign is of a clock that was ahead."""
    if age_s is not None:
        tick()
        Heartbeat.objects.update(at=Now() - timedelta(seconds=age_s))
    answer = Client().get("/healthz")
    assert (answer.status_code, answer.json()["parts"]["tasks"]) == (503, False)
    assert "not ready, tasks: the tick " in caplog.text
    assert why in caplog.text
    assert why.encode() not in answer.content
    assert Client().get("/healthz?without=tasks").status_code == 200


def test_it_is_not_ready_while_the_schedules_are_not_processed(caplog: pytest.LogCaptureFixture) -> None:
    tick()
    Heartbeat.objects.filter(name="schedules").update(at=Now() - timedelta(seconds=75))
    answer = Client().get("/healthz")
    assert (answer.status_code, answer.json()["parts"]["tasks"]) == (503, False)
    assert "the tick of schedules last ran 75 s ago" in caplog.text


@pytest.mark.parametrize(("silent", "parts"), [("beat", (False, True)), ("tick", (True, False))])
def test_it_tells_dead_beat_from_dead_tasks(silent: str, parts: tuple[bool, bool]) -> None:
    """For a minute after the end of beat, its last ticks are recent."""
    tick()
    Heartbeat.objects.filter(name=silent).update(at=Now() - timedelta(seconds=75))
    answer = Client().get("/healthz")
    assert (answer.status_code, answer.json()["parts"]["beat"], answer.json()["parts"]["tasks"]) == (503, *parts)
    assert Client().get("/healthz?without=tasks").status_code == 200


def test_beat_notes_that_it_runs_and_outlives_its_database(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    scheduler = Scheduler(app, lazy=True)
    monkeypatch.setattr(health, "note", Mock(side_effect=OperationalError("gone")))
    scheduler.tick()
    assert "Beat cannot reach the database" in caplog.text
    monkeypatch.undo()
    scheduler.tick()
    assert not Heartbeat.objects.exists()  # it writes every ten seconds
    Scheduler(app, lazy=True).tick()
    assert health.ages_s()[health.BEAT] < 60


def test_it_tells_the_age_of_the_last_backup() -> None:
    assert "sweetspot_backup_age_seconds" not in metrics()
    call_command("note_backup")
    Heartbeat.objects.update(at=Now() - timedelta(hours=3))
    found = metrics()
    assert found["sweetspot_backup_age_seconds"] == pytest.approx(3 * 3600, abs=60)
    assert 'sweetspot_task_silent_seconds{task="backup"}' not in found


def test_it_is_not_ready_while_the_database_can_write_nothing_to_its_disk() -> None:
    tick()
    with connection.cursor() as cursor:
        cursor.execute("SET temp_file_limit = 0")  # as if the disk was full
        try:
            answer = Client().get("/healthz")
        finally:
            cursor.execute("RESET temp_file_limit")
    assert (answer.status_code, answer.json()["parts"]["database"]) == (503, False)


def test_it_tells_how_long_ago_each_periodic_task_ran() -> None:
    tick()
    Heartbeat.objects.update(at=Now() - timedelta(seconds=20))
    assert metrics()['sweetspot_task_silent_seconds{task="tick"}'] == pytest.approx(20, abs=5)
    tick()
    assert metrics()['sweetspot_task_silent_seconds{task="tick"}'] < 10


def test_it_answers_a_probe_over_plain_http_where_pages_are_redirected() -> None:
    tick()
    with override_settings(SECURE_SSL_REDIRECT=True):
        client = Client()
        assert client.get("/healthz").status_code == 200
        assert client.get("/").status_code == 301


def test_it_counts_what_runs_waits_and_is_refused() -> None:
    host = a_host()
    a_run(a_target(host))
    attempt = dispatch_host(host.pk)
    assert attempt
    own = f'{{host="{host.slug}"}}'
    before = metrics()
    assert before[f"sweetspot_queue_orders{own}"] == 1
    assert before['sweetspot_runs{state="running"}'] == 1
    assert before['sweetspot_leases{kind="trial"}'] == 1
    assert before[f"sweetspot_lease_left_seconds{own}"] == pytest.approx(900, abs=60)
    assert f"sweetspot_ingest_lag_seconds{own}" not in before
    say(host, attempt, (1, (ACCEPTED,)), (2, (STARTED, sample())))
    say(a_host(), attempt, (1, (ACCEPTED,)))
    after = metrics()
    assert after['sweetspot_trials{state="running"}'] == 1
    assert after[f"sweetspot_ingest_lag_seconds{own}"] != 0
    assert after['sweetspot_refused_reports_total{reason="unknown_attempt"}'] == 1
    assert after["sweetspot_collectors_failed"] == 0


@pytest.mark.parametrize(
    ("token", "body", "status", "reason"),
    [
        ("nobody's", "{}", 401, "not_authenticated"),
        ("its own", "{}", 400, "bad_message"),
        ("its own", '{"version": 99}', 426, "version_mismatch"),
    ],
)
def test_it_counts_reports_that_are_refused_whole(token: str, body: str, status: int, reason: str) -> None:
    _, own = a_host_with_token()
    client = Client(headers={"authorization": f"Bearer {own if token == 'its own' else token}"})
    assert client.post("/api/worker/v1/report", body, content_type="application/json").status_code == status
    assert metrics()[f'sweetspot_refused_reports_total{{reason="{reason}"}}'] == 1


def test_strangers_who_ask_in_vain_are_counted_and_write_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of them by itself: a second's worth goes into the database at once."""
    seconds = 1000.0
    monkeypatch.setattr(tally, "now", lambda: seconds)
    client = Client(headers={"authorization": "Bearer nobody's"})
    with CaptureQueriesContext(connection) as captured:
        for _ in range(20):
            assert client.post("/api/worker/v1/report", "{}", content_type="application/json").status_code == 401
    assert len([each for each in captured if "core_counter" in each["sql"]]) == 1
    seconds += 1
    assert client.post("/api/worker/v1/report", "{}", content_type="application/json").status_code == 401
    assert counted(Counter.REFUSED, "not_authenticated") == 21
    client.post("/api/worker/v1/report", "{}", content_type="application/json")
    assert metrics()['sweetspot_refused_reports_total{reason="not_authenticated"}'] == 22


def test_it_tells_how_long_a_host_is_silent_and_what_waits_on_its_disk() -> None:
    host = a_host(last_seen_at=timezone.now() - timedelta(seconds=100), spool_bytes=12345)
    found = metrics()
    assert found[f'sweetspot_host_silent_seconds{{host="{host.slug}"}}'] == pytest.approx(100, abs=5)
    assert found[f'sweetspot_host_spool_bytes{{host="{host.slug}"}}'] == 12345


def test_it_counts_quarantined_targets() -> None:
    drive = a_drive()
    name = f'sweetspot_host_quarantined_targets{{host="{drive.host.slug}"}}'
    assert metrics()[name] == 0
    Target.objects.filter(pk=drive.pk).update(present=False, problem=f"{QUARANTINED}a program cannot be killed")
    assert metrics()[name] == 1


def test_the_sizes_of_tables_are_measured_once_in_five_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    now_s = 3 * probes.SIZES_FOR_S
    monkeypatch.setattr(probes, "monotonic", lambda: now_s)
    probes.measured_storage.cache_clear()
    measured = []
    for elapsed_s in (0, 200, 299, 300):
        now_s = 3 * probes.SIZES_FOR_S + elapsed_s
        with CaptureQueriesContext(connection) as captured:
            assert metrics()["sweetspot_database_bytes"] > 0
        measured.append(any("pg_total_relation_size" in query["sql"] for query in captured))
    assert measured == [True, False, False, True]


def test_it_leaves_out_what_needs_the_broker_while_there_is_none() -> None:
    with override_settings(REDIS_URL="redis://sweetspot:secret-password@127.0.0.1:1/0"):
        found = metrics()
    assert found["sweetspot_collectors_failed"] == 1
    assert 'sweetspot_runs{state="queued"}' in found
    assert "sweetspot_server_queue_tasks" not in found


def test_every_line_of_metrics_is_of_prometheus_format() -> None:
    host = a_host()
    a_run(a_target(host))
    text = Client().get("/metrics").content.decode()
    families = set()
    for line in text.splitlines():
        if line.startswith("# "):
            families.add(line.split()[2])
            continue
        match = re.fullmatch(r'([a-z_]+)(\{[a-z]+="[^"\n]*"\})? (-?[0-9.e+-]+)', line)
        assert match, line
        assert match[1] in families


def test_the_manual_the_alerts_and_the_dashboard_know_every_metric_and_no_other() -> None:
    text = Client().get("/metrics").content.decode()
    exist = {line.split()[2] for line in text.splitlines() if line.startswith("# TYPE")}
    for document in ("monitoring.md", "monitoring/alerts.yml", "monitoring/dashboard.json"):
        named = set(re.findall(r"\bsweetspot_[a-z_]+", (settings.BASE_DIR / "docs/how-to" / document).read_text()))
        assert named <= exist, document
        assert document != "monitoring.md" or named == exist
    in_panels = {name for target in targets() for name in re.findall(r"\bsweetspot_[a-z_]+", target["expr"])}
    assert in_panels == exist - WITHOUT_PANEL


def test_it_counts_failed_trials_by_reason() -> None:
    trial = a_run(a_target(a_host())).trials.get(index=0)
    with transaction.atomic():
        transition_trial(trial, TrialState.DISPATCHED)
        transition_trial(trial, TrialState.FAILED, code="fio_error")
    failed = 'sweetspot_failed_trials_total{reason="fio_error"}'
    assert metrics()[failed] == 1


@pytest.mark.parametrize(
    "extra",
    [{"REMOTE_ADDR": "192.0.2.7"}, {"HTTP_X_FORWARDED_FOR": "192.0.2.7"}, {"HTTP_FORWARDED": "for=192.0.2.7"}],
)
def test_it_shows_metrics_on_loopback_alone(extra: dict[str, str]) -> None:
    answer = Client().get("/metrics", **extra)  # type: ignore[arg-type]
    assert answer.status_code == 403
    assert b"SWEETSPOT_METRICS_TOKEN" in answer.content
    assert b"sweetspot_runs" not in answer.content


def test_it_shows_metrics_to_who_has_the_token() -> None:
    with override_settings(METRICS_TOKEN="for-prometheus"):
        assert metrics(REMOTE_ADDR="192.0.2.7", HTTP_AUTHORIZATION="Bearer for-prometheus")
        for wrong in ("Bearer other", "for-prometheus", ""):
            assert Client().get("/metrics", HTTP_AUTHORIZATION=wrong).status_code == 403


def test_it_needs_no_person() -> None:
    client = Client()
    client.force_login(a_user())
    assert client.post("/healthz").status_code == 405
    assert client.post("/metrics").status_code == 405


def test_it_counts_once_each_when_many_count_at_once() -> None:
    at_once(*[lambda: count(Counter.REFUSED, "bad_item")] * 8)
    assert Counter.objects.get().value == 8
