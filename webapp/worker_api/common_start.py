"""The common start of a trial on several hosts."""

import time

from django.http import HttpRequest

from webapp.core.errors import Refusal
from webapp.runs.dispatch.common_start import common_start
from webapp.runs.dispatch.leases import parse_id
from webapp.worker_api.http import host_of, read_message, worker_view
from worker.contract.base import MAX_ENROL_BYTES
from worker.contract.common_start import StartReply, StartRequest


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
