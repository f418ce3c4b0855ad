"""What an enrolled worker calls. The greeting lives here because it touches runs: lost attempts go on with it."""

from django.http import HttpRequest
from msgspec.structs import replace

from webapp.core import tally
from webapp.core.models import Counter
from webapp.core.tokens import hash_token
from webapp.hosts.services import record_hello
from webapp.hosts.worker_http import (
    REFUSALS,
    announced_bytes,
    bearer_token,
    decoded,
    host_of,
    read_body,
    read_message,
    refusal_of,
    worker_view,
)
from webapp.hosts.worker_log import keep_log
from webapp.results.ingest import take_at_length, take_simply
from webapp.results.together import coming
from webapp.runs.dispatch import dispatch_host
from webapp.runs.leases import revive_unfinished
from webapp.runs.locks import drop_left
from worker.contract.base import MAX_HELLO_BYTES, MAX_REPORT_BYTES, ContractError
from worker.contract.greetings import Hello, HelloReply
from worker.contract.reports import Report, ReportReply

# Of a report that is decoded before its sender is known: the statement that takes it knows the token, too.
SHORT_REPORT_BYTES = 256 * 1024  # two or three minutes; an ordinary second has a few kilobytes


@worker_view
def hello(request: HttpRequest) -> HelloReply:
    host = host_of(request)
    message = read_message(request, Hello, limit=MAX_HELLO_BYTES)
    reply = record_hello(host=host, message=message)
    revive_unfinished(host=host, journal=message.journal)
    drop_left(host, message.inventory)
    dispatch_host(host.pk)
    return reply


@worker_view
def report(request: HttpRequest) -> ReportReply:
    """A report that is refused whole is counted beside those of which parts are."""
    try:
        return _taken(request)
    except REFUSALS as error:
        tally.add(Counter.REFUSED, refusal_of(error)[1].code)
        raise
    finally:
        tally.write()


def _taken(request: HttpRequest) -> ReportReply:
    """A short report is read before its sender is known; what is wrong with it is told to hosts only."""
    host = None if announced_bytes(request) <= SHORT_REPORT_BYTES else host_of(request)
    try:
        body = read_body(request, Report, limit=MAX_REPORT_BYTES)
        with coming():
            message = decoded(request, body, Report, limit=MAX_REPORT_BYTES)
    except ContractError:
        host = host or host_of(request)
        raise
    if reply := take_simply(token_hash=hash_token(bearer_token(request)), report=message):
        return reply
    host = host or host_of(request)
    reply = take_at_length(host=host, report=message)
    if message.log is not None:
        keep_log(host=host, shipped=message.log)
    return replace(reply, token_due=host.rotation_requested_at is not None)
