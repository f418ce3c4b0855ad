"""A worker that registers."""

from typing import Any

from webapp.worker_api.tests.posting import post
from worker.contract.base import Message
from worker.contract.tests.examples import HELLO


def register(token: str, message: Message = HELLO) -> Any:
    return post("hello", message, token)
