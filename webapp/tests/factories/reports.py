"""A worker as the server sees one: takes real orders out of the real queue and says what a worker would say."""

import base64
import json
from uuid import UUID

import msgspec

from webapp.celery import app
from webapp.hosts.keys import public_keys
from webapp.hosts.models import Host
from webapp.results.ingest.parse import parse_report
from webapp.results.ingest.report import take_report
from webapp.runs.models import Attempt
from worker.contract.base import encode
from worker.contract.items import (
    Accepted,
    Direction,
    DirectionSample,
    Finished,
    Item,
    Outcome,
    Sample,
    StreamResult,
    StreamStarted,
)
from worker.contract.orders import AnyOrder, queue_name
from worker.contract.packing import pack
from worker.contract.reports import AttemptReply, Batch, Report
from worker.contract.signing import unseal
from worker.contract.tests.examples import AT, BINS, STREAM_RESULT

ACCEPTED = Accepted(at=AT, worker_version="0.1.0")
STARTED = StreamStarted(at=AT, stream=0, job_text="[stream0]\n", command=("fio", "-"))
RESULT = msgspec.structs.replace(STREAM_RESULT, samples=1, stopped=None)
DONE = Finished(at=AT + 61, outcome=Outcome.DONE)
CANCELLED = Finished(at=AT + 61, outcome=Outcome.CANCELLED, code="cancelled", message="Cancelled on the server.")


def failed(code: str = "fio_error", message: str = "fio said no") -> Finished:
    return Finished(at=AT + 61, outcome=Outcome.FAILED, code=code, message=message)


def sample(second: int = 0, stream: int = 0) -> Sample:
    directions = (DirectionSample(direction=Direction.READ, ios=10, bytes=40960, latency=pack(BINS)),)
    return Sample(stream=stream, offset_ms=1000 * (second + 1), length_ms=1000, at=AT + second, directions=directions)


def queued_envelopes(host: Host) -> list[str]:
    """The envelopes in the host's queue, oldest first; they stay there."""
    with app.connection_for_read() as connection:
        messages = connection.default_channel.client.lrange(queue_name(str(host.id)), 0, -1)
    return [_envelope(message) for message in reversed(messages)]


def _envelope(message: bytes) -> str:
    args = json.loads(base64.b64decode(json.loads(message)["body"]))[0]
    envelope: str = args[0]
    return envelope


def queued_orders(host: Host) -> list[AnyOrder]:
    """The same, with their signatures verified as the worker does it."""
    keys = {name: base64.b64decode(key) for name, key in public_keys().items()}
    return [unseal(text, host=str(host.id), public_keys=keys) for text in queued_envelopes(host)]


def say(host: Host, attempt: Attempt | UUID | str, *batches: tuple[int, tuple[Item, ...]]) -> AttemptReply:
    """Report batches (number, items) of one attempt, which the worker is at."""
    name = str(attempt.pk if isinstance(attempt, Attempt) else attempt)
    report = Report(batches=tuple(Batch(attempt=name, seq=seq, items=items) for seq, items in batches), active=(name,))
    reply = take_report(host=host, parsed=parse_report(encode(report)))
    return next(answer for answer in reply.attempts if answer.attempt == name)


def run_to_the_end(host: Host, attempt: Attempt, *, result: StreamResult = RESULT) -> AttemptReply:
    """Everything a worker says of a trial that goes well, in one report."""
    return say(host, attempt, (1, (ACCEPTED,)), (2, (STARTED, sample())), (3, (result, DONE)))
