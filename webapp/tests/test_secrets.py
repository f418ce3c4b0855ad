"""No secret of an installation is in a log, on a page, in a metric, in the audit or in the text of an object."""

import base64
from collections.abc import Iterator
from typing import Any
from urllib.parse import urlsplit

import pytest
from django.conf import settings
from django.db import connection
from django.test import Client

from webapp.core.models import AuditEntry, Role
from webapp.core.services import create_api_token
from webapp.hosts.keys import signing_key
from webapp.runs.models import RunState
from webapp.tests.factories.people import a_user
from webapp.tests.system import StorageHost, System
from webapp.tests.whole_runs import plan, scratch
from worker.contract.greetings import Enrol, EnrolReply
from worker.link.client import Client as WorkerClient
from worker.link.enrolment import Enrolment

pytestmark = [pytest.mark.pipeline]

PAGES = (
    "/",
    "/hosts/",
    "/runs/",
    "/plans/",
    "/results/",
    "/metrics",
    "/healthz?without=beat",  # this system has none
    "/api/v1/hosts",
    "/api/v1/openapi.json",
)


def secrets_of(storage: StorageHost, api_token: str) -> dict[str, str]:
    _, private = signing_key()
    return {
        "host token": storage.enrolment["host_token"],
        "host's broker password": str(urlsplit(storage.enrolment["broker_url"]).password),
        "one-time token": storage.enrolment_token,
        "API token": api_token,
        "secret key": settings.SECRET_KEY,
        "server's broker password": str(urlsplit(settings.REDIS_URL).password),
        "signing key": base64.b64encode(private).decode(),
        "signing key in hex": private.hex(),
    }


def texts(system: System, storage: StorageHost) -> Iterator[tuple[str, str]]:
    yield "the worker's log", storage.log
    yield "gunicorn's log", system.web.log
    yield "the audit", "\n".join(f"{entry} {entry.detail}" for entry in AuditEntry.objects.all())
    client = Client()
    client.force_login(a_user(role=Role.ADMIN))
    for page in (*PAGES, f"/hosts/{storage.slug}/"):
        answer = client.get(page)
        assert answer.status_code == 200, page
        yield page, answer.content.decode()


def test_it_says_no_secret_anywhere(system: System, storage: StorageHost) -> None:
    """After a run with an outage of the server in it, which makes everybody complain."""
    token = create_api_token(user=a_user(), name="for the test")
    run = system.start_run(plan(repeats=2), scratch(storage))
    system.web.stop()
    system.web.start()
    system.until_ended(run, limit_s=90)
    assert run.state == RunState.DONE
    system.get("/api/v1/hosts", token=token)  # it has answered the worker by now
    wanted = secrets_of(storage, token)
    for where, text in texts(system, storage):
        found = [name for name, secret in wanted.items() if secret in text]
        assert not found, f"{found} in {where}"
    assert storage.log


def test_it_keeps_no_secret_in_plain_in_the_database(system: System, storage: StorageHost) -> None:
    """What a stolen dump of the database gives away."""
    token = create_api_token(user=a_user(), name="for the dump")
    wanted = secrets_of(storage, token)
    with connection.cursor() as cursor:
        cursor.execute("SELECT table_name FROM information_schema.tables WHERE table_schema = 'public'")
        tables = [name for (name,) in cursor.fetchall()]
        for table in tables:
            cursor.execute(f'SELECT t::text FROM "{table}" t')
            dump = "\n".join(row for (row,) in cursor.fetchall())
            assert not [name for name, secret in wanted.items() if secret in dump], table


def test_it_masks_secrets_in_the_text_of_objects() -> None:
    secret = "kept-by-the-worker-and-shown-nowhere"
    url = f"rediss://host.0.h:{secret}@broker.example:6379/0"
    known: dict[str, Any] = {
        "host": "h",
        "host_name": "n",
        "host_token": secret,
        "broker_url": url,
        "public_keys": {},
        "contract": 1,
    }
    enrol = Enrol(token=secret, hostname="h", worker_version="1", oldest_contract=2, newest_contract=2)
    enrolment = Enrolment(server="https://server.example", **known)
    for thing in (EnrolReply(**known), enrolment, enrol, WorkerClient("https://server.example", secret)):
        assert secret not in repr(thing)
        assert secret not in str(thing)
        assert secret not in f"{thing!r} {[thing]}"
