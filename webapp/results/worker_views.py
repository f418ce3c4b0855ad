"""What an enrolled worker calls. The greeting lives here because it touches runs: lost attempts go on with it."""

from django.http import HttpRequest

from webapp.hosts.services import record_hello
from webapp.hosts.worker_http import host_of, read_message, worker_view
from webapp.results.ingest import take_report
from webapp.runs.dispatch import dispatch_host
from webapp.runs.leases import revive_unfinished
from worker.contract.base import MAX_HELLO_BYTES, MAX_REPORT_BYTES
from worker.contract.reports import Hello, HelloReply, Report, ReportReply


@worker_view
def hello(request: HttpRequest) -> HelloReply:
    host = host_of(request)
    message = read_message(request, Hello, limit=MAX_HELLO_BYTES)
    reply = record_hello(host=host, message=message)
    revive_unfinished(host=host, journal=message.journal)
    dispatch_host(host.pk)
    return reply


@worker_view
def report(request: HttpRequest) -> ReportReply:
    host = host_of(request)
    return take_report(host=host, report=read_message(request, Report, limit=MAX_REPORT_BYTES))
