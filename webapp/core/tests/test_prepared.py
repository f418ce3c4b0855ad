"""Changes that are one statement: all of them or none, and what they met is told apart."""

import pytest
from django.db import connection, transaction
from django.db.transaction import TransactionManagementError
from django.test.utils import CaptureQueriesContext

from webapp.core import prepared
from webapp.core.tests.factories import a_host
from webapp.hosts.models import Host

pytestmark = pytest.mark.django_db


class Stale(Exception):
    pass


def test_it_makes_changes_together_in_one_statement_also_those_of_a_callee() -> None:
    one, two = a_host(), a_host()
    one.slug, two.slug = "first", "second"
    with CaptureQueriesContext(connection) as captured, prepared.together():
        prepared.update([one], {"slug"})
        with prepared.together():
            prepared.update([two], {"slug"})
        assert {"first", "second"}.isdisjoint(Host.objects.values_list("slug", flat=True))
    assert len([query for query in captured if "update" in query["sql"]]) == 1
    assert set(Host.objects.values_list("slug", flat=True)) == {"first", "second"}


def test_it_says_which_change_met_other_rows_than_expected_and_keeps_none() -> None:
    one, two = a_host(state="active"), a_host(state="active")
    one.hostname, two.hostname = "first", "second"
    with pytest.raises(Stale, match="second"):
        _change_both(one, two)
    assert {"first", "second"}.isdisjoint(Host.objects.values_list("hostname", flat=True))


@transaction.atomic
def _change_both(one: Host, two: Host) -> None:
    with prepared.together():
        prepared.update([one], {"hostname"}, was="active", otherwise=lambda: Stale("first"))
        prepared.update([two], {"hostname"}, was="revoked", otherwise=lambda: Stale("second"))


@pytest.mark.django_db(transaction=True)
def test_it_wants_a_transaction_that_can_be_given_up() -> None:
    host = a_host(state="active")
    with pytest.raises(TransactionManagementError, match="inside a transaction"):
        prepared.update([host], {"hostname"}, was="active", otherwise=lambda: Stale("first"))


def test_it_changes_nothing_where_what_gathers_the_changes_fails() -> None:
    host = a_host()
    host.slug = "changed"
    with pytest.raises(Stale):
        _fail_while_gathering(host)
    prepared.insert([])
    assert not Host.objects.filter(slug="changed").exists()
    prepared.update([host], {"slug"})
    assert Host.objects.filter(slug="changed").exists()


def _fail_while_gathering(host: Host) -> None:
    with prepared.together():
        prepared.update([host], {"slug"})
        raise Stale
