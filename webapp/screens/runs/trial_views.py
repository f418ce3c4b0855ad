"""The page of one trial: its order, configuration and results."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec
from django.db.models import Prefetch
from django.http import HttpRequest, HttpResponse
from django.shortcuts import get_object_or_404, render
from django.urls import reverse
from django.utils import timezone
from django.utils.http import content_disposition_header

from webapp.analysis.evidence import RunFinding
from webapp.analysis.known_ceilings import entered_bounds
from webapp.analysis.reviews import reviewed
from webapp.analysis.run_answer import run_answer
from webapp.analysis.trial_metrics import COMPARED, with_observed
from webapp.hosts.inventory.ceilings import Bound, bounds_of
from webapp.plans.points import in_order, on_virtual_drives
from webapp.plans.values import Value
from webapp.results.metrics import METRICS, Metric, default_metric
from webapp.results.models import NO_IO, Attachment, KernelLine, Result, Sample, StreamRun
from webapp.results.reading.content import without_device_names
from webapp.results.reading.doubts import doubts, steadiness_words
from webapp.results.reading.rows import ResultRow, read_histograms, read_rows
from webapp.results.reading.trial_streams import trial_streams
from webapp.results.selectors import configuration_of, stop_words
from webapp.runs.models import ACTIVE_TRIAL_STATES, SettingChange, Trial, TrialState
from webapp.screens import point_words
from webapp.screens.access import page
from webapp.screens.ceilings import drawn, in_words
from webapp.screens.findings import finding_list
from webapp.screens.payloads import ChartCeiling, ChartSpan
from webapp.screens.runs.live import SAMPLES_AT_FIRST, live_samples, shown_at
from webapp.screens.runs.pictures import Seconds, seconds_response
from webapp.screens.runs.telemetry import lines_of, live_sensors, summary
from webapp.screens.runs.wear import wear_rows
from worker.contract.packing import LAST_BUCKET_NS, supported_percentile, unpack

PERCENTILES = (1.0, 10.0, 25.0, 50.0, 75.0, 90.0, 95.0, 99.0, 99.5, 99.9, 99.95, 99.99, 99.999)
_KIND_WORDS = {
    "lat": "{} the total latency, submission to completion.",
    "clat": "{} completion latency: with this engine option there is no total latency.",
}
TILES = ("iops", "bytes_per_s", "latency_mean", "latency_p99")
METRICS_SHOWN = (
    "iops", "bytes_per_s", "latency_mean", "latency_p50", "latency_p95", "latency_p99", "latency_p999", "latency_max",
    "latency_stddev",
)  # fmt: skip


def _trial(run: int, number: int) -> Trial:
    related = Trial.objects.select_related("run__version__plan", "host", "target__host")
    return get_object_or_404(related.numbered(number), run__number=run)


def _findings(trial: Trial) -> list[RunFinding]:
    """Those of its run to which its seconds are evidence."""
    if not trial.run.ended_at:
        return []
    known = reviewed(trial.run, run_answer(trial.run).findings)
    return [each for each in known if any(span.trial == trial.number for span in each.seconds)]


def _evidence(trial: Trial, findings: Sequence[RunFinding], last_began_s: float) -> tuple[ChartSpan, ...]:
    """Parts of the time axis. `last_began_s`: there, the measured part of the last attempt began."""
    spans = {
        (span.from_s, span.to_s)
        for finding in findings
        if not finding.is_dismissed
        for span in finding.seconds
        if span.trial == trial.number
    }
    return tuple(ChartSpan(from_s=last_began_s + first, to_s=last_began_s + last) for first, last in sorted(spans))


def _seconds(trial: Trial, findings: Sequence[RunFinding], ceilings: Sequence[ChartCeiling]) -> Seconds:
    """The samples of all its attempts, the names of their sensors, and which seconds are evidence."""
    rows = Sample.objects.filter(attempt__trial=trial).select_related("attempt__trial", "attempt__host")
    ordered = rows.defer("latency").order_by("attempt__sequence", "offset_ms", "stream", "direction")
    shown = list(ordered[:SAMPLES_AT_FIRST])
    began = shown_at(shown[0]) - timedelta(milliseconds=shown[0].length_ms) if shown else timezone.now()
    lines = lines_of(shown)
    last = next((row for row in shown if row.attempt_id == shown[-1].attempt_id), None)
    last_began_s = (shown_at(last) - began).total_seconds() - last.offset_ms / 1000 if last else 0.0
    evidence = _evidence(trial, findings, last_began_s)
    return Seconds(live_samples(shown, began, lines), live_sensors(shown, lines), ceilings, evidence)


def _bounds(request: HttpRequest, trial: Trial, results: Sequence[ResultRow]) -> tuple[Bound, ...]:
    """If ceilings are switched on: those of the inventory, and those that people entered."""
    if request.GET.get("ceilings") != "on":
        return ()
    return (*bounds_of({trial.place: _measured_at(trial)}), *entered_bounds(results))


def _results(trial: Trial) -> list[ResultRow]:
    return read_rows(Result.objects.filter(trial=trial).order_by("stream_run__stream", "direction"))


def _measured_at(trial: Trial) -> datetime:
    """The start of its last attempt, or now."""
    last = trial.attempts.exclude(started_at=None).order_by("-number").first()
    return last.started_at if last and last.started_at else timezone.now()


def _percentiles(results: list[ResultRow]) -> list[tuple[str, list[int | None]]]:
    """Percentiles of each result from its histogram; None if too few I/Os are beyond a percentile."""
    stored = read_histograms(result.id for result in results)
    histograms = [unpack(stored[result.id]) for result in results]
    if not any(histogram.counts for histogram in histograms):
        return []
    return [(f"p{percent:g}", [supported_percentile(each, percent) for each in histograms]) for percent in PERCENTILES]


def _skippable(trial: Trial) -> dict[str, object]:
    """The skip actions that the page offers."""
    closed = trial.run.cancel_requested_at is not None or trial.run.state not in ("queued", "running", "paused")
    under_way = trial.state in ACTIVE_TRIAL_STATES and trial.skip_requested_at is None
    same = trial.run.trials.filter(point_key=trial.point_key, target=trial.target_id, state=TrialState.PLANNED)
    return {
        "skippable": not closed and (under_way or trial.state == TrialState.PLANNED),
        "planned_here": 0 if closed else same.count(),
    }


@dataclass(frozen=True)
class Tile:
    """A large figure: its metric, and a text for each direction, which is named if there are several."""

    label: str
    values: tuple[tuple[str, str], ...]


def _steadiness(results: Sequence[ResultRow]) -> list[tuple[str, str]]:
    """The name of a stream, or "", and the verdict on it. Directions of a stream share one verdict."""
    words = {result.stream: steadiness_words(result) for result in results}
    return [(stream, text) for stream, text in words.items() if text != "–"]


def _latency_kinds(results: Sequence[ResultRow]) -> list[str]:
    """Sentences on what the latencies are, by stream if they differ."""
    kinds: dict[str, list[str]] = {}
    for result in results:
        if result.latency_kind:
            kinds.setdefault(result.latency_kind, []).append(result.stream_direction)
    if len(kinds) == 1:
        return [_KIND_WORDS[kind].format("Latency is") for kind in kinds]
    return [_KIND_WORDS[kind].format(f"{', '.join(dict.fromkeys(names))}: latency is") for kind, names in kinds.items()]


def _tiles(results: list[ResultRow]) -> list[Tile]:
    """The metric of the engine first, if it has its own. Without I/O, power and temperature."""
    if any(result.direction == NO_IO for result in results):
        shown = [_observed(COMPARED[key], results) for key in ("power", "temperature")]
    else:
        keys = dict.fromkeys((default_metric(result.point for result in results).key, *TILES)) if results else {}
        values_of = {key: [(METRICS[key].of(result), result.stream_direction) for result in results] for key in keys}
        shown = [
            (METRICS[key], values) for key, values in values_of.items() if any(value is not None for value, _ in values)
        ]
    several = len(results) > 1
    return [
        Tile(metric.label, tuple((metric.format(value), direction if several else "") for value, direction in values))
        for metric, values in shown
    ]


def _observed(metric: Metric, results: list[ResultRow]) -> tuple[Metric, list[tuple[float | None, str]]]:
    return metric, [(metric.of(result), result.direction) for result in with_observed(results, metric).rows]


def _levels(trial: Trial) -> list[tuple[str, Value]]:
    point = trial.shown_point
    return [(name, point[name]) for name in in_order(point)]


@page
def trial_attachment(_request: HttpRequest, number: int, trial: int, attachment: int) -> HttpResponse:
    """A file that an engine made, to be saved."""
    of_trial = Attachment.objects.filter(stream_run__attempt__trial=_trial(number, trial))
    file = get_object_or_404(of_trial, pk=attachment)
    name = f"run-{number}-trial-{trial}-{file.name}"
    return HttpResponse(
        file.content,
        content_type=file.media_type,
        headers={"Content-Disposition": content_disposition_header(as_attachment=True, filename=name)},
    )


@page
def trial_page(request: HttpRequest, number: int, trial: int) -> HttpResponse:
    return render(request, "screens/trial.html", _context(request, _trial(number, trial)))


@page
def trial_samples(request: HttpRequest, number: int, trial: int) -> HttpResponse:
    """SVG of the samples that the page shows."""
    of = _trial(number, trial)
    seconds = _seconds(of, _findings(of), drawn(_bounds(request, of, _results(of))))
    note = f"{of.run.version.plan.title} at {of.target}. Time: min:s since the trial began."
    return seconds_response(seconds, _picture_title(of), note, request)


def _picture_title(trial: Trial) -> str:
    return f"Run {trial.run.number}, trial {trial.number}: {point_words.in_words(trial.point)}"


def _context(request: HttpRequest, trial: Trial) -> dict[str, object]:
    repeats = trial.run.trials.filter(point_key=trial.point_key, target=trial.target_id).order_by("repeat")
    changes = SettingChange.objects.filter(attempt__trial=trial)
    streams = StreamRun.objects.filter(attempt__trial=trial).select_related("attempt", "configuration")
    attachments = Prefetch("attachments", Attachment.objects.defer("compressed"))
    lines = KernelLine.objects.filter(attempt__trial=trial).order_by("at", "sequence")
    results = _results(trial)
    bounds = _bounds(request, trial, results)
    stream_runs = list(streams.prefetch_related(attachments).order_by("attempt__number", "stream"))
    findings = _findings(trial)
    seconds, address = _seconds(trial, findings, drawn(bounds)), [trial.run.number, trial.number]
    names = trial.stream_names or tuple(str(number + 1) for number in range(trial.stream_count))
    return {
        "trial": trial,
        "run": trial.run,
        "drive_state": without_device_names(configuration_of(trial)).get("drive_state", ""),
        "notes": trial.notes.select_related("by", "trial"),
        "percentiles": _percentiles(results),
        "beyond_histogram": any((result.latency_max_ns or 0) > LAST_BUCKET_NS for result in results),
        **_skippable(trial),
        "title": point_words.in_words(trial.point),
        "samples_address": f"{reverse('trial_samples', args=address)}?{request.GET.urlencode()}",
        "picture_title": _picture_title(trial),
        "metrics": METRICS_SHOWN,
        "levels": [(point_words.label(name), point_words.level(name, level)) for name, level in _levels(trial)],
        "repeats": repeats,
        "results": results,
        "tiles": _tiles(results),
        "steadiness": _steadiness(results),
        "latency_kinds": _latency_kinds(results),
        "doubts": dict.fromkeys(doubt.words for result in results for doubt in doubts(result)),
        "trial_streams": trial_streams(trial, results),
        "stops": dict.fromkeys(stop_words(stream.stopped) for stream in stream_runs if stream.stopped),
        "streams": [(stream, names[stream.stream]) for stream in stream_runs],
        "changes": changes.order_by("at", "id"),
        "attempts": trial.attempts.select_related("host").order_by("number"),
        "transitions": trial.transitions.select_related("by").order_by("at", "id"),
        "evidence": msgspec.to_builtins(seconds.evidence),
        "samples": msgspec.to_builtins(seconds.samples),
        "sensors": msgspec.to_builtins(seconds.sensors),
        "findings": finding_list(findings),
        "telemetry": summary(trial),
        "kernel_lines": [line for line in lines if not line.elsewhere],
        "lines_elsewhere": [line for line in lines if line.elsewhere],
        "virtual_drives": on_virtual_drives([trial.point]),
        "wear_rows": wear_rows(trial),
        "wear_open": trial.state in ACTIVE_TRIAL_STATES,
        "kernel_log_read": streams.filter(kernel_log_read=True).exists(),
        "ceilings_shown": request.GET.get("ceilings") == "on",
        "ceilings": in_words(bounds),
        "ceilings_drawn": msgspec.to_builtins(seconds.ceilings),
    }
