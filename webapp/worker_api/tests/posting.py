"""Posts messages as a worker does."""

from typing import Any

import msgspec
from django.test import Client

from worker.contract.base import Message, encode
from worker.contract.greetings import Enrol, Problem


def post(what: str, message: Message | bytes, token: str = "", **extra: Any) -> Any:
    body = message if isinstance(message, bytes) else encode(message)
    headers = {"Authorization": f"Bearer {token}"} if token else {}
    client = Client(enforce_csrf_checks=True)
    return client.post(f"/api/worker/v1/{what}", body, content_type="application/json", headers=headers, **extra)


def problem(response: Any) -> Problem:
    found: Problem = msgspec.json.decode(response.content, type=Problem)
    return found


def enrol_message(token: str, hostname: str = "storage1.lab.example") -> Enrol:
    return Enrol(token=token, hostname=hostname, worker_version="0.1.0", oldest_contract=2, newest_contract=2)


def enrol(token: str, hostname: str = "storage1.lab.example") -> Any:
    return post("enrol", enrol_message(token, hostname))
