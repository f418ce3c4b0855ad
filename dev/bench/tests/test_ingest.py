"""The attempts of the ingest benchmark: the server's quota admits the seconds that their hosts report."""

from datetime import timedelta

import pytest
from msgspec.structs import replace

from dev.bench.ingest.posts import AGE
from dev.bench.ingest.simulated_hosts import SECOND, create_hosts
from webapp.results.ingest.parse import BadItem
from webapp.results.ingest.write import check_samples
from webapp.runs.models import Attempt

LAST = replace(SECOND, offset_ms=12 * 3600 * 1000)


def attempt_of_age(age: timedelta) -> Attempt:
    (host,) = create_hosts(1, age=age)
    return Attempt.objects.get(pk=host.attempt)


@pytest.mark.django_db
def test_attempts_are_old_enough_for_many_seconds() -> None:
    check_samples(attempt_of_age(AGE), [LAST])
    with pytest.raises(BadItem, match="cannot have lasted so long"):
        check_samples(attempt_of_age(timedelta(0)), [LAST])
