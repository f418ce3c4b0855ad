"""What people do with a host, and what that does to those who speak for it."""

import secrets

import pytest
from django.db import IntegrityError, transaction
from django.utils import timezone

from webapp.core.errors import Refusal
from webapp.core.models import AuditEntry
from webapp.hosts.credentials import authenticate_host
from webapp.hosts.models import FormerName, Host, HostState
from webapp.hosts.selectors import free_host_slug, host_named
from webapp.hosts.services import (
    begin_maintenance,
    bring_back,
    end_maintenance,
    enrol,
    issue_enrolment_token,
    remove_host,
    rename_host,
    revoke_host,
)
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.models import Trial
from webapp.tests.factories.hosts import a_host, a_host_with_token, a_target
from webapp.tests.factories.people import a_user
from webapp.tests.factories.runs import a_run
from worker.contract.greetings import Enrol
from worker.contract.orders import queue_name

pytestmark = [pytest.mark.django_db(transaction=True), pytest.mark.usefixtures("broker")]


def said(action: str) -> int:
    return AuditEntry.objects.filter(action=action).count()


def refused(code: str) -> "pytest.RaisesExc[Refusal]":
    return pytest.raises(Refusal, check=lambda refusal: refusal.code == code)


# ---- names


def test_it_renames_and_the_old_name_leads_to_the_host() -> None:
    host = a_host(slug="old")
    assert rename_host(host=host, slug="new", by=a_user())
    assert (host.slug, host_named("old"), host_named("new")) == ("new", host, host)
    assert host_named("other") is None
    assert AuditEntry.objects.get(action="host.rename").detail == {"before": "old"}


def test_it_changes_nothing_when_the_name_is_the_same() -> None:
    host = a_host(slug="same")
    assert not rename_host(host=host, slug="same", by=None)
    assert not FormerName.objects.exists()
    assert said("host.rename") == 0


def test_it_lets_a_host_have_its_former_name_back() -> None:
    host = a_host(slug="one")
    for slug in ("two", "one", "three"):
        rename_host(host=host, slug=slug, by=None)
    assert set(host.former_names.values_list("slug", flat=True)) == {"one", "two"}


@pytest.mark.parametrize("slug", ["", "Upper", "with space", "-begins", "ends-", "a/b", "dots.too", "x" * 64, "add"])
def test_it_refuses_what_cannot_be_a_name(slug: str) -> None:
    host = a_host(slug="good")
    with refused("host_name_bad"):
        rename_host(host=host, slug=slug, by=None)
    assert Host.objects.get().slug == "good"


def test_it_refuses_a_name_that_another_host_has_or_had() -> None:
    first, second = a_host(slug="first"), a_host(slug="second")
    with refused("host_name_taken"):
        rename_host(host=second, slug="first", by=None)
    rename_host(host=first, slug="moved", by=None)
    with refused("host_name_taken"):
        rename_host(host=second, slug="first", by=None)
    assert free_host_slug("first") == "first-2"


def test_it_keeps_queue_and_orders_when_a_host_is_renamed() -> None:
    host = a_host(slug="before")
    a_run(a_target(host))
    queue = queue_name(str(host.pk))
    rename_host(host=host, slug="after", by=None)
    assert dispatch_host(host.pk)
    assert queue_name(str(Host.objects.get().pk)) == queue


# ---- maintenance


def test_it_gives_a_host_in_maintenance_no_trial_until_that_ends() -> None:
    host = a_host()
    a_run(a_target(host))
    begin_maintenance(host=host, note="  new drives  ", by=None)
    assert Host.objects.get().maintenance_note == "new drives"
    assert dispatch_host(host.pk) is None
    begin_maintenance(host=host, note="longer", by=None)
    assert Host.objects.get().maintenance_note == "longer"
    assert end_maintenance(host=host, by=None)
    assert Host.objects.get().maintenance_note == ""
    assert dispatch_host(host.pk)
    assert not end_maintenance(host=host, by=None)


def test_it_takes_no_revoked_host_into_maintenance_and_no_endless_note() -> None:
    host = a_host()
    with refused("note_too_long"):
        begin_maintenance(host=host, note="x" * 501, by=None)
    revoke_host(host=host, by=None)
    with refused("host_revoked"):
        begin_maintenance(host=host, note="", by=None)


# ---- revoked and removed


def test_it_forgets_the_token_of_a_revoked_host_for_ever() -> None:
    host, token = a_host_with_token()
    assert revoke_host(host=host, by=None)
    assert authenticate_host(token) is None
    Host.objects.update(state=HostState.ACTIVE)
    assert authenticate_host(token) is None
    Host.objects.update(state=HostState.REVOKED)
    assert not revoke_host(host=host, by=None)
    assert said("host.revoke") == 1


def test_it_deletes_a_host_that_measured_nothing() -> None:
    host = a_host(slug="bare")
    a_target(host)
    with refused("confirmation_wrong"):
        remove_host(host=host, typed="Bare", by=None)
    assert remove_host(host=host, typed=" bare ", by=None)
    assert not Host.objects.exists()
    assert said("host.delete") == 1


def test_it_hides_a_host_with_trials_and_brings_it_back() -> None:
    host, token = a_host_with_token(slug="busy")
    a_run(a_target(host))
    assert not remove_host(host=host, typed="busy", by=None)
    host.refresh_from_db()
    assert host.archived_at
    assert host.state == HostState.REVOKED
    assert not host.targets.filter(in_policy=True).exists()
    assert Trial.objects.filter(host=host).count() == 2
    assert authenticate_host(token) is None
    assert bring_back(host=host, by=None)
    host.refresh_from_db()
    assert host.archived_at is None
    assert host.state == HostState.REVOKED
    assert authenticate_host(token) is None
    assert not bring_back(host=host, by=None)


def test_it_enrols_a_known_host_again_as_the_same_one() -> None:
    host, old = a_host_with_token(slug="again")
    a_run(a_target(host))
    remove_host(host=host, typed="again", by=None)
    token = issue_enrolment_token(by=None, host=host)
    message = Enrol(token=token, hostname="n", worker_version="0.1.0", oldest_contract=2, newest_contract=2)
    reply = enrol(message)
    host.refresh_from_db()
    assert (reply.host, reply.host_name, host.state, host.archived_at) == (str(host.pk), "again", "active", None)
    assert authenticate_host(reply.host_token) == host
    assert authenticate_host(old) is None
    assert Host.objects.count() == 1


# ---- rules of the database


@pytest.mark.parametrize(
    "changes",
    [
        {"archived_at": timezone.now()},
        {"maintenance_note": "not in maintenance"},
        {"next_token_hash": secrets.token_hex(32)},
        {"state": "revoked", "rotation_requested_at": timezone.now()},
    ],
)
def test_it_refuses_in_the_database_what_cannot_be(changes: dict[str, object]) -> None:
    host = a_host()
    with pytest.raises(IntegrityError), transaction.atomic():
        Host.objects.filter(pk=host.pk).update(**changes)
