"""The HTTP client for the server's worker interface: enrol, hello, report.

An exchange ends in one of three ways: a reply; `Unreachable` (try again later); or `Refused` (the server
understood the request and answers with a Problem).
"""

from typing import TypeVar

import msgspec
import urllib3

from worker import __version__
from worker.contract.base import CONTRACT_VERSION, OLDEST_UNDERSTOOD, ContractError, Failed, Message, decode, encode
from worker.contract.greetings import Enrol, EnrolReply, Hello, HelloReply, Problem, TokenReply, TokenRequest
from worker.contract.reports import ReportReply, StartReply, StartRequest

PREFIX = "/api/worker/v1/"
MAX_REPLY_BYTES = 4 * 1024 * 1024
CONNECT_LIMIT_S = 3.0
ANSWER_LIMIT_S = 15.0

M = TypeVar("M", bound=Message)


class Unreachable(Exception):
    """No usable answer: network trouble, a restart, or an overloaded or broken server."""

    code = "server_unreachable"


class Refused(Failed):
    """The server refused the request."""

    def __init__(self, status: int, problem: Problem) -> None:
        super().__init__(str(problem.code), f"{problem.message} ({problem.code}, HTTP {status})")
        self.status = status

    @property
    def about_token(self) -> bool:
        """True if the host itself is refused, not the message."""
        return self.status in (401, 403)


class Client:
    """One keep-alive connection for each thread; every exchange has a time limit."""

    def __init__(
        self, server: str, token: str = "", *, ca_file: str = "", answer_limit_s: float = ANSWER_LIMIT_S
    ) -> None:
        self._base = server.rstrip("/") + PREFIX
        self.contract = CONTRACT_VERSION
        self._headers = {"Content-Type": "application/json", "User-Agent": f"sweetspot-worker/{__version__}"}
        if token:
            self.use_token(token)
        self._pool = urllib3.PoolManager(
            num_pools=1,
            maxsize=2,
            retries=False,
            timeout=urllib3.Timeout(connect=CONNECT_LIMIT_S, read=answer_limit_s),
            ca_certs=ca_file or None,
        )

    def __repr__(self) -> str:
        return f"Client({self._base!r})"

    def use_token(self, token: str) -> None:
        """Use this token from the next exchange on. A running exchange is repeated if the old token is refused."""
        self._headers = {**self._headers, "Authorization": f"Bearer {token}"}

    def speak(self, version: int) -> None:
        """Use the contract version that the server chose, or the nearest known one, from the next exchange on."""
        self.contract = min(max(version, OLDEST_UNDERSTOOD), CONTRACT_VERSION)

    def new_token(self) -> TokenReply:
        return self._post("token", encode(TokenRequest(version=self.contract)), TokenReply)

    def enrol(self, message: Enrol) -> EnrolReply:
        return self._post("enrol", encode(message), EnrolReply)

    def hello(self, message: Hello) -> HelloReply:
        return self._post("hello", encode(message), HelloReply)

    def report(self, body: bytes) -> ReportReply:
        """Send a Report that is already JSON text (the spool keeps batches encoded)."""
        return self._post("report", body, ReportReply)

    def common_start(self, attempt: str) -> StartReply:
        return self._post("start", encode(StartRequest(attempt=attempt, version=self.contract)), StartReply)

    def close(self) -> None:
        self._pool.clear()

    def _post(self, what: str, body: bytes, kind: type[M]) -> M:
        headers = self._headers
        status, answer = self._exchange(self._base + what, body, headers)
        if status == 401 and headers is not self._headers:
            status, answer = self._exchange(self._base + what, body, self._headers)
        if status == 200:
            return self._read(answer, kind)
        problem = self._problem(answer)
        if problem is None or status >= 500 or status == 429:
            words = problem.message if problem else answer[:200].decode(errors="replace")
            raise Unreachable(f"{self._base}{what} answered HTTP {status}: {words}")
        raise Refused(status, problem)

    def _exchange(self, url: str, body: bytes, headers: dict[str, str]) -> tuple[int, bytes]:
        try:
            response = self._pool.request(
                "POST", url, body=body, headers=headers, preload_content=False, redirect=False
            )
            answer = response.read(MAX_REPLY_BYTES + 1)
            if len(answer) > MAX_REPLY_BYTES:
                response.close()
            response.release_conn()
        except (urllib3.exceptions.HTTPError, OSError) as error:
            raise Unreachable(f"{url} cannot be reached: {_cause(error)}") from error
        return response.status, answer

    def _read(self, answer: bytes, kind: type[M]) -> M:
        try:
            return decode(answer, kind, limit=MAX_REPLY_BYTES)
        except ContractError as error:
            raise Unreachable(f"{self._base} gave an answer that is not a Sweetspot message: {error}") from error

    @staticmethod
    def _problem(answer: bytes) -> Problem | None:
        """The Problem in the answer; None if something other than a Sweetspot server answered."""
        try:
            return msgspec.json.decode(answer, type=Problem)
        except (msgspec.DecodeError, UnicodeDecodeError):
            return None


def _cause(error: Exception) -> str:
    """The innermost error: urllib3 wraps errors in errors."""
    innermost: BaseException = error
    while (inner := getattr(innermost, "reason", None) or innermost.__cause__) and isinstance(inner, BaseException):
        innermost = inner
    return str(innermost) or type(innermost).__name__
