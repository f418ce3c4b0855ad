"""Backup and restore as docs/how-to/backup.md says: the server goes on from the backup, hosts still speak to it."""

import subprocess
from pathlib import Path

import pytest
from django.core.management import call_command
from django.db import connection
from django.utils import timezone

from dev.stack.postgres import programs
from webapp.celery import redis_client
from webapp.core.services import create_api_token
from webapp.hosts import credentials
from webapp.hosts.keys import signing_key
from webapp.results.models import Result
from webapp.runs.models import Run, RunState
from webapp.tests.factories.people import operator
from webapp.tests.system import StorageHost, System
from webapp.tests.whole_runs import assert_nothing_open, assert_whole, plan, samples_of, scratch
from worker.contract.orders import queue_name

pytestmark = [pytest.mark.pipeline]


def call(program: str, *arguments: str) -> None:
    facts = connection.settings_dict
    where = ["--host", facts["HOST"], "--username", facts["USER"], "--dbname", facts["NAME"]]
    argv = [str(programs() / program), *where, *arguments]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr


def lose_everything(storage: StorageHost) -> None:
    """What a new machine has: an empty database, and a Redis of which only the server's own user is known."""
    with connection.cursor() as cursor:
        cursor.execute("drop schema public cascade; create schema public")
    with redis_client() as server:
        server.acl_deluser(credentials.user_name(storage.host_id))
        server.delete(queue_name(str(storage.host_id)))


def test_it_goes_on_from_a_backup_that_was_made_in_the_middle_of_a_trial(
    system: System, storage: StorageHost, tmp_path: Path
) -> None:
    """The trial of then has gone on since: its newer seconds are lost with the server, so it is measured again."""
    before = system.until_ended(system.start_run(plan(), scratch(storage)), limit_s=60)
    token, key = create_api_token(user=operator(), name="from before"), signing_key()[0]
    run = system.start_run(plan(runtime="8s", retries=1), scratch(storage))
    system.until(lambda: samples_of(run).count() >= 2, limit_s=30, what="two seconds")
    call("pg_dump", "--format", "custom", "--file", str(tmp_path / "sweetspot.dump"))
    known, runs = samples_of(run).count(), Run.objects.count()  # a second try of this test has those of the first
    system.until(lambda: samples_of(run).count() >= known + 2, limit_s=30, what="seconds after the backup")

    system.web.stop()
    lose_everything(storage)
    call("pg_restore", "--no-owner", "--exit-on-error", str(tmp_path / "sweetspot.dump"))
    call_command("migrate", verbosity=0)
    call_command("setup", verbosity=0)
    system.web.start()

    assert_whole(Run.objects.get(pk=before.pk))
    assert Result.objects.filter(run=before).exists()
    assert signing_key()[0] == key
    assert system.get("/api/v1/runs", token=token)["count"] == runs
    system.until(lambda: "(gap: " in storage.log, limit_s=60, what="the host sees that its newer reports are gone")
    run.attempts.update(lease_until=timezone.now())  # nobody waits a quarter of an hour here
    assert system.until_ended(run, limit_s=60).state == RunState.DONE
    assert_whole(run)
    assert run.trials.get().attempts.count() == 2
    assert_nothing_open()
    after = system.until_ended(system.start_run(plan(), scratch(storage)), limit_s=60)
    assert after.state == RunState.DONE
    assert after.number == run.number + 1
