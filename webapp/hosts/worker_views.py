"""Enrolment: the only call of a worker without a token of its own."""

from django.conf import settings
from django.http import HttpRequest

from webapp.hosts.services import enrol as enrol_host
from webapp.hosts.worker_http import read_message, worker_view
from worker.contract.base import MAX_ENROL_BYTES
from worker.contract.reports import Enrol, EnrolReply


@worker_view
def enrol(request: HttpRequest) -> EnrolReply:
    message = read_message(request, Enrol, limit=MAX_ENROL_BYTES)
    return enrol_host(message, broker_url=settings.WORKER_REDIS_URL)
