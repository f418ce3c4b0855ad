"""Registration: a worker that started, or looked at its hardware again, says what its host is and can do.

The host's unfinished attempts go on before it gets anything new, and attempts that it no longer has are lost.
"""

from django.http import HttpRequest

from webapp.hosts.services import register_host
from webapp.hosts.sessions import claim_session
from webapp.runs.dispatch.dispatcher import dispatch_host
from webapp.runs.dispatch.leases import lose_forgotten, revive_unfinished
from webapp.runs.dispatch.locks import drop_left
from webapp.worker_api.http import host_of, read_message, worker_view
from worker.contract.base import MAX_HELLO_BYTES
from worker.contract.greetings import Hello, HelloReply


@worker_view
def register(request: HttpRequest) -> HelloReply:
    host = host_of(request)
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
