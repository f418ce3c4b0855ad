"""Results, their validity, and the bytes that a run wrote to its drives."""

from collections.abc import Iterable
from datetime import datetime
from typing import Any
from uuid import UUID

from django.http import HttpRequest, HttpResponse, StreamingHttpResponse
from ninja import Field, Query, Router, Schema

from webapp.api.common.authentication import OPERATORS, operator
from webapp.api.common.schemas import PARQUET, Input, Paged
from webapp.api.runs import RunOut, TrialOut, run_with
from webapp.core.table_files import file_response
from webapp.results.export import results_table
from webapp.results.models import BOTH
from webapp.results.reading.filter import DIRECTIONS, read_filter
from webapp.results.reading.query import ResultQuery
from webapp.results.reading.rows import ResultRow, read_rows
from webapp.results.selectors import (
    trial_with,
)
from webapp.results.validity import MAX_REASON_LENGTH, mark_run, mark_trial, trust_run, trust_trial
from webapp.results.wear import Counted, DriveWear, wear_of
from webapp.runs.models import Run, Trial
from worker.contract.steadiness import Verdict

# Mark trials and runs as invalid, and remove the mark.

router = Router(tags=["results"])


class ReasonIn(Input):
    reason: str = Field(max_length=MAX_REASON_LENGTH)


@router.post("/trials/{trial_id}/invalid", response=TrialOut, auth=OPERATORS)
def invalid_trial(request: HttpRequest, trial_id: UUID, payload: ReasonIn) -> Trial:
    """Mark a trial's results as invalid, with a reason. Safe to repeat; another reason replaces the first."""
    trial = trial_with(str(trial_id))
    mark_trial(trial=trial, reason=payload.reason, by=operator(request))
    return trial


@router.delete("/trials/{trial_id}/invalid", response=TrialOut, auth=OPERATORS)
def valid_trial(request: HttpRequest, trial_id: UUID) -> Trial:
    """Remove the mark. Safe to repeat."""
    trial = trial_with(str(trial_id))
    trust_trial(trial=trial, by=operator(request))
    return trial


@router.post("/runs/{number}/invalid", response=RunOut, auth=OPERATORS)
def invalid_run(request: HttpRequest, number: int, payload: ReasonIn) -> Run:
    """Mark all results of an ended run as invalid, with a reason."""
    run = run_with(number)
    mark_run(run=run, reason=payload.reason, by=operator(request))
    return run


@router.delete("/runs/{number}/invalid", response=RunOut, auth=OPERATORS)
def valid_run(request: HttpRequest, number: int) -> Run:
    """Remove the run's mark; trials that were marked separately stay invalid."""
    run = run_with(number)
    trust_run(run=run, by=operator(request))
    return run


# Bytes that a run wrote to its drives, and the wear they caused.


class CountedOut(Schema):
    """`count` is accurate to `step`; null if unknown, with the reason in `why`."""

    count: int | None
    step: int
    why: str


class AmplificationOut(Schema):
    """`ratio` lies between `low` and `high`; null if the counters are missing or too coarse."""

    ratio: float | None
    low: float
    high: float
    why: str


class DriveWearOut(Schema):
    """Bytes written to a drive, by four counters.

    `engine_bytes` (of `engines`, by label) is the sum for all `together` drives that the trials wrote to at once.
    """

    host: str
    device: str
    drive: str
    serial: str
    model: str
    targets: list[str]
    engines: list[str]
    engine_bytes: int
    together: int
    kernel_bytes: int | None
    kernel_at_least: bool
    host_bytes: CountedOut
    media_bytes: CountedOut
    amplification: AmplificationOut
    percent_before: int | None
    percent_after: int | None
    percent_used: CountedOut
    problem: str

    @staticmethod
    def resolve_percent_used(wear: DriveWear) -> Counted:
        return wear.percent_used


@router.get("/runs/{number}/wear", response=list[DriveWearOut])
def run_wear(request: HttpRequest, number: int) -> list[DriveWear]:
    """Wear of every drive that the run wrote to, so far or in total."""
    return wear_of(run_with(number))


# The query parameters that choose results.

FILTERS: list[dict[str, object]] = [
    {"name": name, "in": "query", "schema": {"type": "string"}, "description": text}
    for name, text in (
        ("run", "number of a run, several as 17,18 or 17..25; may be repeated, as all of these"),
        ("host", "slug of a host"),
        ("target", "host/target; for several targets at once, the first one"),
        ("model", "drive model"),
        ("serial", "serial number of a drive"),
        ("controller", "model of a controller"),
        ("layout", "layout as a plan writes it, or the label of an import"),
        ("tool", "engine, or tool whose output was imported"),
        ("tool_version", "tool and its version, as `fio 3.33`"),
        ("import", "number of an import, several as for run; with `run`, results of both"),
        ("reference", "1 to include published tables (references)"),
        ("configuration", "prefix of the digest of an observed configuration, at least 6 characters"),
        ("repeat", "number of a repeat, or 2..5"),
        ("plan", "slug of a plan"),
        ("part", "name of a part of a plan"),
        ("label", "label of a host in its group; `no label` for results without one"),
        ("direction", f"{', '.join(DIRECTIONS[:-1])} or {DIRECTIONS[-1]}; `{BOTH}`: only the sum is known"),
        ("steadiness", f"verdict on the speed during the trial: {', '.join(Verdict)}; may be repeated"),
        ("invalid", "1 to include invalid results"),
        ("fact.<name>", "text of a label of imports, e.g. fact.table=Elevator: noop; unknown for imports without it"),
        (
            "factor.<name>",
            "levels of any factor, e.g. factor.block_size=4096, factor.iodepth=1..64 *2 or factor.scheduler=not set",
        ),
    )
]


def asked_pairs(request: HttpRequest, *without: str) -> Iterable[tuple[str, str]]:
    """Return the query parameters as pairs, except those `without`, which the operation reads itself."""
    return [(key, value) for key, values in request.GET.lists() for value in values if key not in without]


class ResultOut(Schema):
    """One direction of a finished trial or of an imported test. A percentile is null if there are too few I/Os for it,
    and an imported value is null if its tool does not state it.

    17112760320 ns is fio's last histogram bucket: more than 17 s.
    """

    trial: UUID | None  # null for an imported result
    run: int  # 0 for an imported result
    imported: int  # number of the import, 0 for the result of a run
    import_title: str
    reference: bool  # of a published table; such results are only listed if asked for
    tool: str
    controller: str
    plan: str
    target: str
    label: str  # label of the host in its group; "" without a group
    repeat: int
    direction: str
    point: dict[str, Any]
    point_key: str
    measured_at: datetime
    time_known: bool
    ios: int | None
    bytes: int | None
    runtime_ms: int | None
    iops: float | None
    bytes_per_s: float | None
    latency_kind: str
    latency_min_ns: float | None
    latency_mean_ns: float | None
    latency_max_ns: float | None
    latency_stddev_ns: float | None
    p50_ns: int | None
    p95_ns: int | None
    p99_ns: int | None
    p999_ns: int | None
    steadiness: str  # too_short, stalled, stepped, drifting, bursty or steady; "" without samples
    steadiness_numbers: dict[str, float]  # shares are fractions: 0.1 is 10 %
    settings_changed: bool  # by something else, during the measurement
    device_share: float | None  # bytes that the devices counted / bytes of the engine; null where they do not count
    metrics: dict[str, float]  # the engine's own, by name; in the last direction of a trial only
    invalid: bool
    why_invalid: str
    kernel_lines: int  # storage errors in the kernel log during the trial

    @staticmethod
    def resolve_trial(result: ResultRow) -> str | None:
        return result.trial_id or None

    @staticmethod
    def resolve_target(result: ResultRow) -> str:
        return result.target_name


class ResultsOut(Schema):
    items: list[ResultOut]
    count: int


@router.get("/results", response=ResultsOut, openapi_extra={"parameters": FILTERS})
def results(request: HttpRequest, page: Query[Paged.Input]) -> dict[str, object]:
    """Valid results, newest first."""
    valid_results = ResultQuery.of(read_filter(asked_pairs(request, "limit", "offset"))).results
    return {
        "items": read_rows(valid_results[page.offset : page.offset + page.limit]),
        "count": valid_results.order_by().count(),
    }


class Newest(Schema):
    limit: int | None = Field(None, ge=1, le=2**31)


@router.get("/results.parquet", openapi_extra={"parameters": FILTERS, "responses": PARQUET})
def results_parquet(request: HttpRequest, newest: Query[Newest]) -> HttpResponse | StreamingHttpResponse:
    """All matching results, newest first, in a Parquet file: a column for each factor, units in the metadata."""
    table = results_table(read_filter(asked_pairs(request, "limit")), newest.limit)
    return file_response(table, "sweetspot-results", "parquet")
