"""Seals of what answers read: every committed change gives another one, and nothing else does."""

import threading

import pytest
from django.db import connection, transaction

from webapp.analysis.seals import WATCHED
from webapp.core import changes
from webapp.core.models import Change
from webapp.hosts.models import Host
from webapp.tests.factories.hosts import a_host

SCOPE = ["common"]


@pytest.mark.django_db
def test_rows_that_are_made_changed_and_deleted_change_the_seal() -> None:
    seals = [changes.seal(SCOPE)]
    host = a_host("a")
    seals.append(changes.seal(SCOPE))
    Host.objects.filter(pk=host.pk).update(slug="b")
    seals.append(changes.seal(SCOPE))
    host.delete()
    seals.append(changes.seal(SCOPE))
    assert len({*seals}) == 4


@pytest.mark.django_db
def test_columns_that_no_answer_reads_and_equal_values_keep_the_seal() -> None:
    host = a_host("a")
    before = changes.seal(SCOPE)
    Host.objects.filter(pk=host.pk).update(spool_bytes=7)
    Host.objects.filter(pk=host.pk).update(slug="a")
    assert changes.seal(SCOPE) == before


@pytest.mark.django_db
def test_a_scope_without_a_change_keeps_its_seal() -> None:
    before = changes.seal(["results"])
    a_host("a")
    assert changes.seal(["results"]) == before


@pytest.mark.django_db
def test_a_rollback_brings_the_seal_back_and_the_same_change_again_gives_another() -> None:
    before = changes.seal(SCOPE)
    seals = set()
    for _ in range(2):
        with transaction.atomic():
            a_host("a")
            seals.add(changes.seal(SCOPE))
            transaction.set_rollback(True)
        assert changes.seal(SCOPE) == before
    assert len(seals) == 2


@pytest.mark.django_db
def test_merging_keeps_seals_with_one_row_a_scope() -> None:
    for name in ("a", "b", "c"):
        a_host(name)
    before = changes.seal(SCOPE)
    changes.merge()
    assert changes.seal(SCOPE) == before
    assert Change.objects.filter(scope="common").count() == 1


@pytest.mark.django_db
def test_installing_again_changes_no_trigger() -> None:
    before = _functions()
    changes.install(WATCHED)
    assert _functions() == before
    changes.install({})
    assert not _functions()


def _functions() -> set[tuple[int, str]]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT oid, proname FROM pg_proc WHERE starts_with(proname, 'seal_')")
        return {*cursor.fetchall()}


@pytest.mark.django_db(transaction=True)
def test_a_change_that_is_committed_last_but_was_made_first_changes_the_seal() -> None:
    """A reader between both commits must not see the same seal as a reader after them."""
    made, may_commit = threading.Event(), threading.Event()

    def slow() -> None:
        with transaction.atomic():
            a_host("slow")
            made.set()
            may_commit.wait(10)
        connection.close()

    thread = threading.Thread(target=slow)
    thread.start()
    assert made.wait(10)
    a_host("fast")
    between = changes.seal(SCOPE)
    may_commit.set()
    thread.join(10)
    assert changes.seal(SCOPE) != between
