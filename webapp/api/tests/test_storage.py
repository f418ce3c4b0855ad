"""The API of storage: sizes for admins, and the preview of old runs."""

from datetime import timedelta

import pytest
from django.utils import timezone

from webapp.api.tests.clients import Caller, caller
from webapp.core.models import Role
from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_target
from webapp.tests.factories.runs import a_run

pytestmark = pytest.mark.django_db


@pytest.fixture
def admin() -> Caller:
    return caller(Role.ADMIN)


def test_it_has_the_size_of_each_kind(admin: Caller) -> None:
    status, storage = admin("get", "storage")
    assert status == 200
    assert sum(size["bytes"] for size in storage["sizes"]) == storage["database_bytes"]


def test_it_lists_old_runs_and_deletes_none(admin: Caller) -> None:
    run = a_run(a_target(), state="done", ended_at=timezone.now() - timedelta(days=20))
    plan = run.version.plan.slug
    (old,) = admin("get", "storage/old-runs?days=10")[1]
    assert (old["plan"], old["runs"], old["kept"]) == (plan, [run.number], [])
    assert admin("get", f"storage/old-runs?days=10&plan={plan}")[1] == [old]
    assert admin("get", "storage/old-runs?days=10&plan=other")[1] == []
    assert admin("get", "storage/old-runs?days=30")[1] == []
    assert admin("get", "storage/old-runs?days=0")[0] == 422
    assert Run.objects.exists()
