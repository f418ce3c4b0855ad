"""What workers call: enrolment, registration, reports, the common start, and the files that install a worker.

The host's unfinished attempts go on before it gets anything new, and attempts that it no longer has are lost.

A registration rewrites the host's row and may store an inventory, so its number and bytes have a rate.
"""

import time

from django.http import FileResponse, Http404, HttpRequest, HttpResponse
from django.http.response import HttpResponseBase
from django.views.decorators.http import require_GET
from msgspec.structs import replace

from webapp.core import tally
from webapp.core.errors import Refusal
from webapp.core.models import Counter
from webapp.core.throttle import Rate
from webapp.hosts.credentials import next_token
from webapp.hosts.installer import SCRIPT, authority, install_script, worker_wheel
from webapp.hosts.models import Host
from webapp.hosts.services import enrol as enrol_host
from webapp.hosts.services import keep_log, register_host
from webapp.hosts.sessions import claim_session
from webapp.hosts.wheelhouse import built_wheelhouse
from webapp.results.ingest.parse import parse_report
from webapp.results.ingest.report import take_report
from webapp.runs.dispatch.dispatcher import common_start, dispatch_host
from webapp.runs.dispatch.leases import lose_forgotten, parse_id, revive_unfinished
from webapp.runs.dispatch.locks import drop_left
from webapp.worker_api import report_interval
from webapp.worker_api.http import (
    REFUSALS,
    TooFast,
    answer_in,
    host_of,
    read_body,
    read_message,
    refusal_of,
    worker_view,
)
from worker.contract.base import MAX_ENROL_BYTES, MAX_HELLO_BYTES, MAX_REPORT_BYTES
from worker.contract.greetings import Enrol, EnrolReply, Hello, HelloReply, TokenReply, TokenRequest
from worker.contract.reports import Report, ReportReply, StartReply, StartRequest

# Reports of running attempts, at most one a second from each host.


@worker_view
def report(request: HttpRequest) -> ReportReply:
    """A report that is refused as a whole is counted, like one of which a part is."""
    try:
        host = host_of(request)
        body = read_body(request, Report, limit=MAX_REPORT_BYTES)
        with report_interval.measured(host.pk):
            reply = _taken(request, host, body)
    except REFUSALS as error:
        tally.add(Counter.REFUSED, refusal_of(error)[1].code)
        raise
    finally:
        tally.write()
    return replace(reply, report_every_s=report_interval.current_s())


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
