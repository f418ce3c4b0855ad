"""Posts of many clients at once: a thread for each, over connections that stay open."""

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import urllib3

from dev.console import ToolError
from dev.stack.network import LOOPBACK

Client = TypeVar("Client")
Outcome = TypeVar("Outcome")


class Server:
    def __init__(self, port: int, connections: int) -> None:
        # A server may close an idle connection just before a request: such a request is sent again, as a host does.
        again = urllib3.Retry(3, allowed_methods=None)
        self._pool = urllib3.HTTPConnectionPool(LOOPBACK, port, maxsize=connections, retries=again, timeout=60)

    def post(self, path: str, headers: Mapping[str, str], body: bytes = b"") -> bytes:
        """The body of the answer. Raises ToolError unless the server took the request."""
        answer = self._pool.request("POST", path, body=body, headers=headers)
        if answer.status != 200 or b'"refusal":{' in answer.data:
            raise ToolError(f"{path}: the server answered {answer.status}: {answer.data[:500].decode()}")
        return answer.data


def at_once(work: Callable[[Client], Outcome], clients: Sequence[Client]) -> list[Outcome]:
    """The outcome of each client's work, all done at the same time."""
    with ThreadPoolExecutor(len(clients)) as threads:
        return list(threads.map(work, clients))
