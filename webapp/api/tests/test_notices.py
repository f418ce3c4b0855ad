"""The API of notices."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from django.test import Client

from webapp.core.models import Role, User
from webapp.core.services import create_api_token
from webapp.notices.models import Notice, Subscription
from webapp.notices.webhook import unsealed
from webapp.tests.factories.notices import a_notice, a_plan, a_subscription
from webapp.tests.factories.people import a_user

pytestmark = pytest.mark.django_db

URL = "https://1.1.1.1/hook"
NEW = {"channel": "webhook", "url": URL, "events": ["ended", "failed"]}
Caller = Callable[..., tuple[int, Any]]


@pytest.fixture
def me() -> User:
    return a_user(role=Role.VIEWER)


@pytest.fixture
def call(me: User) -> Caller:
    client = Client(headers={"Authorization": f"Bearer {create_api_token(user=me, name='test')}"})

    def made(method: str, path: str, body: object = None) -> tuple[int, Any]:
        data = {} if body is None else {"data": json.dumps(body), "content_type": "application/json"}
        response = getattr(client, method)(f"/api/v1/notices/{path}", **data)
        return response.status_code, response.json() if response.content not in (b"", b"null") else None

    return made


def test_a_viewer_subscribes_changes_pauses_and_deletes(call: Caller) -> None:
    plan = a_plan()
    status, made = call("post", "subscriptions", NEW)
    assert (status, made["channel"], made["plan"], made["events"]) == (201, "webhook", None, ["ended", "failed"])
    assert unsealed(Subscription.objects.get().secret) == made["secret"]
    path = f"subscriptions/{made['id']}"
    assert call("get", "subscriptions")[1]["count"] == 1
    assert "secret" not in call("get", path)[1]
    changed = call("patch", path, {"plan": plan.slug, "events": ["late"]})[1]
    assert (changed["plan"], changed["events"], changed["url"]) == (plan.slug, ["late"], URL)
    assert call("patch", path, {"paused": True})[1]["paused_at"]
    assert call("patch", path, {"paused": False, "plan": None})[1] == changed | {"plan": None}
    status, renewed = call("post", f"{path}/secret")
    assert status == 200
    assert renewed["secret"] != made["secret"]
    assert call("delete", path) == (204, None)
    assert call("get", path)[0] == 404


def test_it_refuses_unknown_fields_events_and_plans(call: Caller) -> None:
    assert call("post", "subscriptions", NEW | {"user": 1})[0] == 422
    assert call("post", "subscriptions", NEW | {"events": []})[0] == 422
    assert call("post", "subscriptions", NEW | {"events": ["test"]})[0] == 422
    assert call("post", "subscriptions", NEW | {"plan": "none"})[0] == 404
    assert call("post", "subscriptions", NEW | {"url": "http://127.0.0.1/"})[1]["code"] == "webhook_inside"
    assert call("post", "subscriptions", {"channel": "email", "events": ["ended"]})[1]["code"] == "mail_not_set_up"
    made = call("post", "subscriptions", NEW)[1]
    assert call("patch", f"subscriptions/{made['id']}", {"channel": "email"})[0] == 422
    assert call("patch", f"subscriptions/{made['id']}", {"events": []})[0] == 422


def test_it_lists_deliveries_and_sends_again(call: Caller, me: User) -> None:
    notice = a_notice(URL, user=me)
    Notice.objects.update(state="failed", tries=3, last_error="The receiver answered 404.")
    a_notice(URL, user=me)
    found = call("get", f"deliveries?subscription={notice.subscription_id}")[1]["items"]
    assert [(one["id"], one["state"], one["next_try_at"]) for one in found] == [(str(notice.pk), "failed", None)]
    assert call("get", "deliveries")[1]["count"] == 2
    status, again = call("post", f"deliveries/{notice.pk}/again")
    assert (status, again["state"], again["tries"]) == (200, "pending", 0)
    assert call("post", f"subscriptions/{notice.subscription_id}/test") == (202, None)
    assert call("post", f"subscriptions/{notice.subscription_id}/test")[1]["code"] == "test_pending"


def test_it_finds_nothing_of_others(call: Caller) -> None:
    hers = a_subscription(URL)
    notice = a_notice(URL)
    assert call("get", "subscriptions")[1]["count"] == call("get", "deliveries")[1]["count"] == 0
    for method, path, body in (
        ("get", "", None), ("patch", "", {"paused": True}), ("delete", "", None), ("post", "/test", None),
        ("post", "/secret", None),
    ):  # fmt: skip
        status, told = call(method, f"subscriptions/{hers.pk}{path}", body)
        assert (status, told["code"]) == (404, "subscription_unknown")
    assert call("post", f"deliveries/{notice.pk}/again")[0] == 404
    hers.refresh_from_db()
    assert hers.paused_at is None
