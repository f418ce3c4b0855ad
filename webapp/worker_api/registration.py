"""Registration: a worker that started, or looked at its hardware again, says what its host is and can do.

The host's unfinished attempts go on before it gets anything new, and attempts that it no longer has are lost.

A registration rewrites the host's row and may store an inventory, so its number and bytes have a rate.
"""

from django.http import HttpRequest

from webapp.core.throttle import Rate
from webapp.hosts.services import register_host
from webapp.hosts.sessions import claim_session
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.dispatch.leases import lose_forgotten, revive_unfinished
from webapp.runs.dispatch.locks import drop_left
from webapp.worker_api.http import TooFast, host_of, read_message, worker_view
from worker.contract.base import MAX_HELLO_BYTES
from worker.contract.greetings import Hello, HelloReply

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
        host=host, session=message.session, previous=message.previous_session, hostname=message.inventory.hostname
    )
    reply = register_host(host=host, message=message)
    revive_unfinished(host=host, journal=message.journal)
    if not message.state_disk_full:  # else the journal may be incomplete
        lose_forgotten(host=host, journal=message.journal)
    drop_left(host, message.inventory)
    dispatch_host(host.pk)
    return reply
