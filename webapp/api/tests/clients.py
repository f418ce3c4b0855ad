"""Requests with a person's API token."""

import json
from collections.abc import Callable
from typing import Any

from django.test import Client

from webapp.core.models import Role, User
from webapp.core.services import create_api_token

DOCUMENT = {
    "title": "Mine",
    "repeats": 2,
    "common": {"size": "1M", "runtime": "3s"},
    "parts": [{"name": "a", "factors": {"pattern": "randread", "iodepth": "1, 2"}}],
}
Caller = Callable[..., tuple[int, Any]]


def caller(role: Role, *, may_arm: bool = False) -> Caller:
    """A person with a token: (method, path, body) -> status and JSON."""
    user, _ = User.objects.get_or_create(username=f"{role}-person", role=role)
    token = create_api_token(user=user, name="test", may_arm=may_arm)
    client = Client(headers={"Authorization": f"Bearer {token}"})

    def call(method: str, path: str, body: object = None) -> tuple[int, Any]:
        data = {} if body is None else {"data": json.dumps(body), "content_type": "application/json"}
        response = getattr(client, method)(f"/api/v1/{path}", **data)
        is_json = response.content and response.headers.get("Content-Type", "").startswith("application/json")
        return response.status_code, response.json() if is_json else response.content.decode()

    return call
