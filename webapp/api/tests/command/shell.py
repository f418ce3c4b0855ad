"""The command against the real application: requests go to Django instead of over the network."""

from collections.abc import Callable
from dataclasses import dataclass, field

import pytest
from django.test import Client

from worker.client.configuration import Configuration
from worker.client.main import main
from worker.client.server import Request, Server

URL = "http://testserver"
PLAN = """\
title: Nightly
repeats: 2
common: {size: 1M, runtime: 3s}
parts:
- {name: a, factors: {pattern: randread, iodepth: [1, 2]}}
"""


@dataclass
class Django:
    """A transport. `failures` are raised first, one for each request; `before` is called before a request."""

    failures: list[Exception] = field(default_factory=list)
    before: Callable[[str], None] = lambda _url: None
    asked: list[str] = field(default_factory=list)

    def __call__(self, request: Request) -> tuple[int, bytes]:
        assert request.timeout > 0
        path, body = request.url.removeprefix(URL), request.body
        self.asked.append(f"{request.method} {path}")
        if self.failures:
            raise self.failures.pop(0)
        self.before(path)
        content = b"" if body is None else body if isinstance(body, bytes) else body.read()
        kind = request.headers.get("Content-Type", "application/json")
        plain = {name: text for name, text in request.headers.items() if not name.startswith("Content-")}
        response = Client().generic(request.method, path, content, kind, headers=plain)
        answer = b"".join(response)
        if request.into and response.status_code < 300:
            request.into.write(answer)
            return response.status_code, b""
        return response.status_code, answer


@dataclass
class Shell:
    """`shell("plan", "check", "x.yaml")` runs the command; returns exit code, standard output and standard error."""

    capsys: pytest.CaptureFixture[str]
    token: str
    django: Django = field(default_factory=Django)

    def __call__(self, *argv: str) -> tuple[int, str, str]:
        code = main(argv, connect=lambda _: Server(Configuration(URL, self.token, ""), self.django))
        said = self.capsys.readouterr()
        assert self.token not in said.out + said.err
        return code, said.out, said.err
