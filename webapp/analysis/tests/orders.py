"""The order in which results were measured."""

import random
from datetime import timedelta
from itertools import groupby

from webapp.results.models import Result, known
from webapp.runs.models import Run
from webapp.tests.factories.results import START


def alternate(run: Run) -> None:
    """Every second repeat ran in reverse, as in a randomised run; a `Lab` measures one series after the other."""
    results = run.results.select_related("trial").order_by("trial__repeat", "trial__index", "id")
    for repeat, members in groupby(results, key=lambda result: known(result.trial).repeat):
        for place, result in enumerate(members):
            seconds = place if repeat % 2 else -place
            at = START + timedelta(hours=repeat, seconds=seconds)
            Result.objects.filter(pk=result.pk).update(measured_at=at)


def shuffle(run: Run, chance: random.Random) -> None:
    """Measured block by block, in random order."""
    assert run.started_at is not None
    for result in run.results.all():
        assert result.repeat is not None
        minute, second = chance.randrange(60), chance.randrange(60)
        result.measured_at = run.started_at.replace(hour=result.repeat, minute=minute, second=second)
        result.save(update_fields=["measured_at"])
