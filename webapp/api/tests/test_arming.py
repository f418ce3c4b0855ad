"""A script overwrites drives only with a token to which a person gave the right."""

from datetime import timedelta

import pytest
from django.utils import timezone

from webapp.api.tests.clients import DOCUMENT, Caller
from webapp.core.models import AuditEntry
from webapp.hosts.models import Host
from webapp.runs.models import Run
from webapp.tests.factories.hosts import a_drive

pytestmark = pytest.mark.django_db
START = {"plan": "w", "targets": ["a/nvme0"], "armed_serials": ["SN1"]}


@pytest.fixture(autouse=True)
def plan(host: Host, operator: Caller) -> None:
    """It overwrites the drive."""
    a_drive(host, "nvme0", serial="SN1", purges=[{"method": "discard", "problem": ""}])
    parts = [{"name": "a", "factors": {"pattern": "randwrite"}}]
    operator("post", "plans", {"document": DOCUMENT | {"parts": parts}, "slug": "w"})


def schedule(operator: Caller) -> int:
    body = {
        "name": "Nightly", "plan": "w", "trigger": "cron", "cron": "0 2 * * *", "time_zone": "UTC",
        "targets": ["a/nvme0"],
    }  # fmt: skip
    status, made = operator("post", "schedules", body)
    assert status == 201, made
    number: int = made["id"]
    return number


def test_a_token_without_the_right_arms_nothing(operator: Caller, arming_operator: Caller) -> None:
    number = arming_operator("post", "runs", START)[1]["number"]
    arming_operator("post", f"runs/{number}/disarm")
    until = (timezone.now() + timedelta(days=1)).isoformat()
    for path, body in (
        ("runs", START),
        ("runs", START | {"armed_serials": []}),
        (f"runs/{number}/again", {"armed_serials": ["SN1"]}),
        (f"runs/{number}/arm", {"serials": ["SN1"]}),
        (f"schedules/{schedule(operator)}/arm", {"serials": ["SN1"], "until": until}),
        ("hosts/a/targets/nvme0/purges", {"method": "discard", "serial": "SN1"}),
    ):
        status, refused = operator("post", path, body)
        assert (status, refused["code"]) == (403, "token_may_not_arm"), path
    assert Run.objects.count() == 1
    assert Run.objects.get().armed_until is None


def test_a_token_with_the_right_arms_and_is_named_in_the_audit_log(operator: Caller, arming_operator: Caller) -> None:
    assert arming_operator("post", "runs", START)[0] == 201
    assert AuditEntry.objects.get(action="run.arm").detail["api_token"] == "test"
    until = (timezone.now() + timedelta(days=1)).isoformat()
    path = f"schedules/{schedule(operator)}/arm"
    assert arming_operator("post", path, {"serials": ["SN1"], "until": until})[0] == 200


def test_a_token_without_the_right_starts_a_plan_that_overwrites_nothing(operator: Caller) -> None:
    operator("post", "plans", {"document": DOCUMENT, "slug": "reads"})
    assert operator("post", "runs", {"plan": "reads", "targets": ["a/nvme0"]})[0] == 201
