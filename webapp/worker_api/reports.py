"""Reports of running attempts, at most one a second from each host."""

from django.http import HttpRequest
from msgspec.structs import replace

from webapp.core import tally
from webapp.core.models import Counter
from webapp.hosts.models import Host
from webapp.hosts.sessions import claim_session
from webapp.hosts.worker_log import keep_log
from webapp.results.ingest.parse import parse_report
from webapp.results.ingest.report import take_report
from webapp.worker_api import report_interval
from webapp.worker_api.http import REFUSALS, answer_in, host_of, read_body, refusal_of, worker_view
from worker.contract.base import MAX_REPORT_BYTES
from worker.contract.reports import Report, ReportReply


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
    claim_session(host=host, session=parsed.report.session, previous=parsed.report.previous_session)
    reply = take_report(host=host, parsed=parsed)
    if parsed.report.log is not None:
        keep_log(host=host, shipped=parsed.report.log)
    return replace(reply, token_due=host.rotation_requested_at is not None)
