"""Enrolment, the only call of a worker without a token of its own, and the renewal of a token."""

from django.http import HttpRequest

from webapp.hosts.services import enrol as enrol_host
from webapp.hosts.tokens import next_token
from webapp.worker_api.http import host_of, read_message, worker_view
from worker.contract.base import MAX_ENROL_BYTES
from worker.contract.greetings import Enrol, EnrolReply, TokenReply, TokenRequest


@worker_view
def enrol(request: HttpRequest) -> EnrolReply:
    return enrol_host(read_message(request, Enrol, limit=MAX_ENROL_BYTES))


@worker_view
def renew_token(request: HttpRequest) -> TokenReply:
    host = host_of(request)
    read_message(request, TokenRequest, limit=MAX_ENROL_BYTES)
    return next_token(host=host)
