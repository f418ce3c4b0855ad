"""HTTP for workers: body limits, the host's token, the contract's messages, and Problem bodies."""

import threading
from collections import Counter
from collections.abc import Callable
from functools import wraps
from typing import TypeVar

from django.db import DataError, IntegrityError
from django.http import HttpRequest, HttpResponse
from django.http.request import UnreadablePostError
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_POST
from msgspec.structs import replace

from webapp.core.errors import Refusal
from webapp.core.logs import about, bind
from webapp.hosts.credentials import authenticate_host
from webapp.hosts.models import Host
from webapp.hosts.services import EnrolRefused
from webapp.hosts.sessions import SecondWorker
from worker.contract.base import ContractError, Message, TooLarge, VersionMismatch, decode, encode
from worker.contract.greetings import Problem

M = TypeVar("M", bound=Message)
Answer = Callable[[HttpRequest], Message]

_STATUS: tuple[tuple[type[Exception], int], ...] = (
    (TooLarge, 413),
    (VersionMismatch, 426),
    (ContractError, 400),
    (EnrolRefused, 403),
    (SecondWorker, 409),
    (Refusal, 400),
)


# Of one host in one process, in which sixteen threads run Django. A worker sends one request after the other.
MAX_AT_ONCE = 3
_lock = threading.Lock()
_at_once: Counter[object] = Counter()  # host -> number of its requests that are processed


class TooManyAtOnce(Exception):
    """The host has MAX_AT_ONCE other requests here: a stolen token must not occupy all threads."""


class TooFast(Exception):
    """The host sends more than its rate allows: a stolen token must not fill the disk."""


class NotAuthenticated(Exception):
    """No token, an unknown one, or one that was revoked: not told apart."""


REFUSALS = (NotAuthenticated, TooManyAtOnce, TooFast, ContractError, Refusal, DataError, IntegrityError)


def worker_view(answer: Answer) -> Callable[[HttpRequest], HttpResponse]:
    """A view that takes POST and answers with a message of the contract, a Problem where something is wrong."""

    @csrf_exempt
    @require_POST
    @wraps(answer)
    def view(request: HttpRequest) -> HttpResponse:
        with about():  # ends what `host_of` binds
            try:
                return _answered(request, answer)
            finally:
                _leave(request)

    return view


def _answered(request: HttpRequest, answer: Answer) -> HttpResponse:
    try:
        return _json(200, _in_its_version(request, answer(request)))
    except REFUSALS as error:
        return _json(*refusal_of(error))


def refusal_of(error: Exception) -> tuple[int, Problem]:
    """Status and body of the answer to a request that met one of `REFUSALS`."""
    if isinstance(error, NotAuthenticated):
        message = "This host token is unknown or was revoked. Enrol the host again."
        return 401, Problem(code="not_authenticated", message=message)
    if isinstance(error, TooManyAtOnce):
        message = "This host has too many requests at the same time. Send one after the other."
        return 429, Problem(code="too_many_at_once", message=message)
    if isinstance(error, TooFast):
        message = "This host registers too often. Wait a minute."
        return 429, Problem(code="too_fast", message=message)
    if isinstance(error, ContractError | Refusal):
        status = next(status for kind, status in _STATUS if isinstance(error, kind))
        return status, Problem(code=error.code, message=str(error)[:2000])
    # DataError, IntegrityError: e.g. a NUL, which JSON can hold and PostgreSQL's text cannot
    words = "The message is well-formed, but some of its content cannot be stored, for example a NUL."
    return 400, Problem(code="bad_message", message=words)


def read_message(request: HttpRequest, kind: type[M], *, limit: int) -> M:
    """The request's message. Raises ContractError."""
    message = decode(read_body(request, kind, limit=limit), kind, limit=limit)
    answer_in(request, message.version)  # type: ignore[attr-defined]
    return message


def read_body(request: HttpRequest, kind: type[M], *, limit: int) -> bytes:
    """The bytes of a message. Raises ContractError; a body that is announced as too long is not read."""
    announced = request.META.get("CONTENT_LENGTH") or ""
    if not announced.isdigit():
        raise ContractError(f"{kind.__name__} has no Content-Length. Send it without chunks, with its length.")
    if int(announced) > limit:
        raise TooLarge(f"{kind.__name__} of {announced} bytes is over the limit of {limit} bytes.")
    try:
        return request.read(limit + 1)
    except UnreadablePostError as error:
        raise ContractError(f"{kind.__name__} ended too early. Send it again.") from error


def answer_in(request: HttpRequest, version: int) -> None:
    """Answer in the contract version of the message: a worker that is one version behind is understood."""
    request.contract_version = version  # type: ignore[attr-defined]


def _bearer_token(request: HttpRequest) -> str:
    """The token that the request carries, "" for none."""
    scheme, _, token = request.META.get("HTTP_AUTHORIZATION", "").partition(" ")
    return token.strip() if scheme.lower() == "bearer" else ""


def host_of(request: HttpRequest) -> Host:
    """The host whose token the request carries. One query, whatever the token is.

    Raises NotAuthenticated or TooManyAtOnce.
    """
    host = authenticate_host(_bearer_token(request))
    if host is None:
        raise NotAuthenticated
    bind(host=host.slug)
    _enter(request, host)
    return host


def _enter(request: HttpRequest, host: Host) -> None:
    with _lock:
        if _at_once[host.pk] >= MAX_AT_ONCE:
            raise TooManyAtOnce
        _at_once[host.pk] += 1
    request.host_at_work = host.pk  # type: ignore[attr-defined]


def _leave(request: HttpRequest) -> None:
    """The end of a request, also of one without a host."""
    host = getattr(request, "host_at_work", None)
    with _lock:
        if host is not None:
            _at_once[host] -= 1
            if not _at_once[host]:
                del _at_once[host]


def _in_its_version(request: HttpRequest, reply: Message) -> Message:
    spoken = getattr(request, "contract_version", None)
    return reply if spoken in (None, reply.version) else replace(reply, version=spoken)  # type: ignore[attr-defined]


def _json(status: int, message: Message) -> HttpResponse:
    return HttpResponse(encode(message), status=status, content_type="application/json")
