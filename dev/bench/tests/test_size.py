"""The data of the benchmark of pages, in its smallest size."""

import random

import pytest
from django.db import connection
from django.test import Client

from dev.bench.requests import kinds
from dev.bench.rows import fill
from dev.bench.samples import fill_samples
from webapp.core.models import Role
from webapp.results.models import Result, Sample
from webapp.results.retention import partitions
from webapp.runs.models import Run
from webapp.tests.factories.people import a_user

pytestmark = pytest.mark.django_db
TRIALS = 504  # of a run


def indexes() -> set[str]:
    with connection.cursor() as cursor:
        cursor.execute("SELECT indexname FROM pg_indexes WHERE tablename = %s", [Result._meta.db_table])
        return {name for (name,) in cursor.fetchall()}


def test_results_and_samples_are_filled_and_every_kind_of_page_can_be_requested(client: Client) -> None:
    before = indexes()
    made = fill(11 * TRIALS)  # two runs of nine grids: most are copies
    assert made == Result.objects.count() == 11 * TRIALS
    assert indexes() == before
    assert fill_samples(2) == 2 * made == Sample.objects.count()
    assert min(partition.month for partition in partitions()).year == 2025
    client.force_login(a_user("olga", Role.OPERATOR))
    chance = random.Random(1)
    for kind in kinds(Run.objects.count()):
        kind.read(client, kind.address(chance))
