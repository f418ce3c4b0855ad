"""Imports at the same time, each with a database connection of its own."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier

import pytest
from django.db import connection

from webapp.imports.reading.limits import Read
from webapp.imports.services import add_found, begin_import
from webapp.results.models import Import, ImportedFile, Origin, Result
from webapp.tests.factories.imports import PLAIN

pytestmark = pytest.mark.django_db(transaction=True)


def begun() -> Import:
    return begin_import(title="Old results", pattern="", given={}, by=None)


def at_once(*actions: Callable[[], object]) -> None:
    """Start all actions together; raise the first error."""
    barrier = Barrier(len(actions))

    def run(action: Callable[[], object]) -> None:
        try:
            barrier.wait()
            action()
        finally:
            connection.close()

    with ThreadPoolExecutor(len(actions)) as pool:
        for ended in [pool.submit(run, action) for action in actions]:
            ended.result()


def a_table(first: int) -> str:
    return "direction,iops\n" + "".join(f"read,{first + row}\n" for row in range(300))


def test_imports_that_begin_at_once_have_different_numbers() -> None:
    at_once(*[begun] * 6)
    assert sorted(Import.objects.values_list("number", flat=True)) == [1, 2, 3, 4, 5, 6]


def test_the_same_file_in_two_imports_at_once_is_stored_once() -> None:
    imports = [begun(), begun()]
    at_once(*[lambda one=one: add_found(one, [Read("a.csv", PLAIN)]) for one in imports])
    assert Result.objects.count() == 3
    reasons = ImportedFile.objects.exclude(reason="").values_list("reason", flat=True)
    assert [reason.partition(",")[0] for reason in reasons] == ["The same content was imported before"]


def test_requests_that_add_to_one_import_at_once_number_its_tests_once() -> None:
    one = begun()
    texts = [a_table(1000 * place) for place in range(3)]
    at_once(*[lambda text=text: add_found(one, [Read(f"{text[:30]}.csv", text)]) for text in texts])
    assert sorted(Origin.objects.values_list("number", flat=True)) == list(range(1, 901))
    one.refresh_from_db()
    assert (one.files_read, one.results_made) == (3, 900)
