"""What workers call: enrolment, registration, reports, the common start, and the files that install a worker.

The host's unfinished attempts go on before it gets anything new, and attempts that it no longer has are lost.

A registration rewrites the host's row and may store an inventory, so its number and bytes have a rate.
"""

import logging
import math
import threading
import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from typing import TypeVar

from django.db import DataError, IntegrityError
from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.request import UnreadablePostError
from django.http.response import HttpResponseBase
from django.views.decorators.csrf import csrf_exempt
from django.views.decorators.http import require_GET, require_POST
from msgspec.structs import replace

from webapp.core import tally
from webapp.core.errors import Refusal
from webapp.core.logs import about, bind
from webapp.core.models import Counter as StoredCounter
from webapp.core.throttle import Rate
from webapp.hosts.credentials import authenticate_host, next_token
from webapp.hosts.installer import SCRIPT, authority, install_script, worker_wheel
from webapp.hosts.models import Host
from webapp.hosts.services import EnrolRefused, keep_log, register_host
from webapp.hosts.services import enrol as enrol_host
from webapp.hosts.sessions import SecondWorker, claim_session
from webapp.hosts.wheelhouse import built_wheelhouse
from webapp.results.ingest.parse import parse_report
from webapp.results.ingest.report import take_report
from webapp.runs.dispatch.dispatcher import common_start, dispatch_host
from webapp.runs.dispatch.leases import lose_forgotten, parse_id, revive_unfinished
from webapp.runs.dispatch.locks import drop_left
from worker.contract.base import (
    MAX_ENROL_BYTES,
    MAX_HELLO_BYTES,
    MAX_REPORT_BYTES,
    ContractError,
    Message,
    TooLarge,
    VersionMismatch,
    decode,
    encode,
)
from worker.contract.greetings import Enrol, EnrolReply, Hello, HelloReply, Problem, TokenReply, TokenRequest
from worker.contract.reports import Report, ReportReply, StartReply, StartRequest

# HTTP for workers: body limits, the host's token, the contract's messages, and Problem bodies.

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


# How often hosts are to report: every second, and less often while this process is busy with reports.
#
# The load is the mean number of reports that the process works on at the same time, over a second or more. It is near 1
# while reports are taken as fast as they come, and near the number of threads that run Django (`webapp.serving.worker`)
# when they pile up. The capacity is the number of reports per second that the process can take:
#
#     load > HIGH_LOAD    the rate of this period, because reports pile up
#     load < LOW_LOAD     1.25 times as much as before
#
#     interval = hosts ÷ (SHARE × capacity), from MIN_INTERVAL_S to MAX_INTERVAL_S
#
# The hosts are those that reported in the last HOST_TIMEOUT_S, and those that will report for the first time in the
# next EXPECTED_S if new ones go on to come as in this period: when 2,000 hosts begin at once, the first reports of many
# wait for several seconds. The interval is changed only after every host has had time to follow the last change. Each
# process decides by itself and for the hosts that are connected to it. A report of ten seconds costs little more than a
# report of one.

log = logging.getLogger(__name__)

MIN_INTERVAL_S, MAX_INTERVAL_S = 1.0, 10.0
HIGH_LOAD, LOW_LOAD = 10.0, 2.0  # busy threads, of sixteen
SHARE = 0.9  # of the capacity that is used
GROWTH = 1.25
MIN_PERIOD_S = 1.0  # over which the load is measured
HOST_TIMEOUT_S = 2 * MAX_INTERVAL_S
EXPECTED_S = 2.0


class ReportInterval:
    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._capacity = math.inf  # reports per second
        self._reported_at: dict[object, float] = {}  # by host, its last report
        self.interval_s = MIN_INTERVAL_S
        self._begin(time.monotonic())

    def _begin(self, now: float) -> None:
        """Begin a period in which the load is measured."""
        self._since = now
        self._busy_s = 0.0  # sum over the reports that ended in it
        self._reports: Counter[object] = Counter()  # by host

    def add(self, host: object, *, busy_s: float, now: float) -> None:
        """Count a report of this host, which took `busy_s`."""
        with self._lock:
            self._busy_s += busy_s
            self._reports[host] += 1
            elapsed_s = now - self._since
            if elapsed_s < max(MIN_PERIOD_S, self.interval_s):
                return
            load = self._busy_s / elapsed_s
            before, self.interval_s = self.interval_s, self._next_s(load, elapsed_s, now)
            self._begin(now)
        if before != self.interval_s:
            log.info("Load %.1f: hosts are asked to report every %.1f s.", load, self.interval_s)

    def _next_s(self, load: float, elapsed_s: float, now: float) -> float:
        hosts = self._hosts(elapsed_s, now)
        if load > HIGH_LOAD:
            # A host that does not follow the interval counts like the others.
            reports = sum(min(sent, elapsed_s / self.interval_s + 1) for sent in self._reports.values())
            self._capacity = reports / elapsed_s
        elif elapsed_s > HOST_TIMEOUT_S:  # nobody reported for a while
            self._capacity = math.inf
        elif load < LOW_LOAD:
            self._capacity *= GROWTH
        self._capacity = max(self._capacity, hosts / SHARE / MAX_INTERVAL_S)  # less would not change the interval
        return max(MIN_INTERVAL_S, hosts / SHARE / self._capacity)

    def _hosts(self, elapsed_s: float, now: float) -> float:
        """How many report now and soon."""
        new = self._reports.keys() - self._reported_at.keys()
        self._reported_at |= dict.fromkeys(self._reports, now)
        self._reported_at = {host: at for host, at in self._reported_at.items() if at > now - HOST_TIMEOUT_S}
        return len(self._reported_at) + EXPECTED_S * len(new) / elapsed_s


_of_this_process = ReportInterval()


@contextmanager
def measured(host: object) -> Iterator[None]:
    """Around the work for one report of a host, without the wait for its body."""
    started_at = time.monotonic()
    try:
        yield
    finally:
        now = time.monotonic()
        _of_this_process.add(host, busy_s=now - started_at, now=now)


def current_s() -> float:
    """The interval to ask for now."""
    return _of_this_process.interval_s


# Reports of running attempts, at most one a second from each host.


@worker_view
def report(request: HttpRequest) -> ReportReply:
    """A report that is refused as a whole is counted, like one of which a part is."""
    try:
        host = host_of(request)
        body = read_body(request, Report, limit=MAX_REPORT_BYTES)
        with measured(host.pk):
            reply = _taken(request, host, body)
    except REFUSALS as error:
        tally.add(StoredCounter.REFUSED, refusal_of(error)[1].code)
        raise
    finally:
        tally.write()
    return replace(reply, report_every_s=current_s())


def _taken(request: HttpRequest, host: Host, body: bytes) -> ReportReply:
    parsed = parse_report(body)
    answer_in(request, parsed.report.version)
    claim_session(host=host, session=parsed.report.session, earlier=parsed.report.earlier_sessions)
    reply = take_report(host=host, parsed=parsed)
    if parsed.report.log is not None:
        keep_log(host=host, shipped=parsed.report.log)
    return replace(reply, token_due=host.rotation_requested_at is not None)


# What a storage server fetches before it has a token: worker, packages, installation script. No secrets in it.


@require_GET
def download(request: HttpRequest, version: str, name: str) -> HttpResponseBase:  # noqa: ARG001 - every view has one
    wheel, wheelhouse = worker_wheel(), built_wheelhouse()
    if version == wheel.version:
        if name == SCRIPT:
            return HttpResponse(install_script(wheel).text, content_type="text/x-shellscript; charset=utf-8")
        if name == wheel.filename:
            return HttpResponse(wheel.content, content_type="application/octet-stream")
        if wheelhouse and name == wheelhouse.filename:
            return FileResponse(wheelhouse.path.open("rb"), content_type="application/zip")
    raise Http404(f"This server has worker version {wheel.version}. Create a new command on the page “Add host”.")


@require_GET
def authority_certificate(request: HttpRequest) -> HttpResponse:  # noqa: ARG001 - every view has one
    """For clients; the page of a new token shows its checksum."""
    certificate = authority()
    if not certificate:
        raise Http404("The certificate of this server needs no private authority.")
    return HttpResponse(certificate, content_type="application/x-pem-file")


# Enrolment, the only call of a worker without a token of its own, and the renewal of a token.


@worker_view
def enrol(request: HttpRequest) -> EnrolReply:
    return enrol_host(read_message(request, Enrol, limit=MAX_ENROL_BYTES))


@worker_view
def renew_token(request: HttpRequest) -> TokenReply:
    host = host_of(request)
    read_message(request, TokenRequest, limit=MAX_ENROL_BYTES)
    return next_token(host=host)


# The common start of a trial on several hosts.


@worker_view
def start(request: HttpRequest) -> StartReply:
    """Both times are taken as near to the network as possible, because the host reads the server's clock from them."""
    received_at = time.time()
    host = host_of(request)
    message = read_message(request, StartRequest, limit=MAX_ENROL_BYTES)
    attempt_id = parse_id(message.attempt)
    if attempt_id is None:
        raise Refusal("attempt_closed", "This host has no such attempt.")
    start_at = common_start(host=host, attempt_id=attempt_id)
    return StartReply(
        received_at=received_at, sent_at=time.time(), start_at=None if start_at is None else start_at.timestamp()
    )


# Of each host. An idle worker registers once a minute, with about 100 kB; of 4 MB with the largest inventory.
NUMBER = Rate(burst=60, per_s=0.2)
BYTES = Rate(burst=32 * 1024**2, per_s=100 * 1024)


@worker_view
def register(request: HttpRequest) -> HelloReply:
    host = host_of(request)
    announced = request.META.get("CONTENT_LENGTH") or ""
    if not NUMBER.take(host.pk) or (announced.isdigit() and not BYTES.take(host.pk, int(announced))):
        raise TooFast
    message = read_message(request, Hello, limit=MAX_HELLO_BYTES)
    claim_session(
        host=host, session=message.session, earlier=message.earlier_sessions, hostname=message.inventory.hostname
    )
    reply = register_host(host=host, message=message)
    revive_unfinished(host=host, journal=message.journal)
    if not message.state_disk_full:  # else the journal may be incomplete
        lose_forgotten(host=host, journal=message.journal)
    drop_left(host, message.inventory)
    dispatch_host(host.pk)
    return reply
