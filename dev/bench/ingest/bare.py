"""The baseline for report posts: a Django view that inserts and commits the same row and does nothing else."""

from datetime import UTC, datetime
from uuid import UUID

from django.http import HttpRequest, HttpResponse
from django.views.decorators.csrf import csrf_exempt

from dev.bench.ingest.simulated_hosts import SECOND
from webapp.results.models import Sample

_DIRECTION = SECOND.directions[0]
_LATENCY = _DIRECTION.latency
_BARE_STREAM = 1  # real reports use stream 0


@csrf_exempt
def bare(_request: HttpRequest, attempt: UUID, second: int) -> HttpResponse:
    assert SECOND.device
    Sample.objects.create(
        attempt_id=attempt,
        stream=_BARE_STREAM,
        offset_ms=1000 * (second + 1),
        direction=_DIRECTION.direction.value,
        at=datetime.fromtimestamp(SECOND.at, tz=UTC),
        length_ms=SECOND.length_ms,
        ios=_DIRECTION.ios,
        bytes=_DIRECTION.bytes,
        p50_ns=_DIRECTION.p50_ns,
        p99_ns=_DIRECTION.p99_ns,
        p999_ns=_DIRECTION.p999_ns,
        latency=_LATENCY,
        utilisation_percent=SECOND.device.utilisation_percent,
        queue_depth=SECOND.device.queue_depth,
    )
    return HttpResponse(b"{}", content_type="application/json")
