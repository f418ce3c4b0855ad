"""The samples of a run or trial as a picture: a chart for each kind of value, on one time axis."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from operator import attrgetter

from django.http import HttpRequest, HttpResponse
from django.utils import timezone

from webapp.core import formatting
from webapp.core.errors import Refusal, read_number
from webapp.pictures.axes import Axis, time_axis, value_axis
from webapp.pictures.charts import DASHED, Band, Chart, Kind, Line, Mark
from webapp.pictures.drawing import Drawing, picture, source_text
from webapp.results.metrics import METRICS
from webapp.screens.ceilings import ceiling_lines
from webapp.screens.explore.pictures import TIME_STEPS
from webapp.screens.payloads import ChartCeiling, ChartSpan, LiveSample, LiveSensors
from webapp.screens.runs.telemetry import FORMATS

DIRECTIONS = ("read", "write", "trim", "transaction", "resync")  # in the order of their colours
DEVICE = 5  # the colour of lines that belong to no direction
MAX_GAP_S = 1.5  # as in the page: between the end of a sample and the beginning of the next
LONG_MS = 1500  # a longer sample is drawn from its beginning to its end
MAX_SPANS = 500  # trials; more would be narrower than a pixel

Value = Callable[[LiveSample], float | None]
Key = tuple[str, str, int]  # host, direction, stream


@dataclass(frozen=True)
class Seconds:
    """What a page has of a run or trial."""

    samples: Sequence[LiveSample]
    sensors: Sequence[LiveSensors]
    ceilings: Sequence[ChartCeiling] = ()
    evidence: Sequence[ChartSpan] = ()


def seconds_response(seconds: Seconds, title: str, note: str, request: HttpRequest) -> HttpResponse:
    """The picture of the seconds `from` to `to`, or of all."""
    try:
        low, high = (
            read_number(name, request.GET[name], high=2**31) if name in request.GET else default
            for name, default in (("from", 0), ("to", 2**31))
        )
    except Refusal as refusal:
        return HttpResponse(str(refusal), status=422, content_type="text/plain")
    shown = [sample for sample in seconds.samples if low <= sample.at_s <= high]
    charts = seconds_pictures(Seconds(shown, seconds.sensors, seconds.ceilings, seconds.evidence))
    page = request.build_absolute_uri(request.path.removesuffix("samples.svg"))
    drawing = Drawing(title, charts, note, notes=[] if charts else ["There are no samples."])
    return HttpResponse(picture(drawing, source_text(timezone.now(), page)), content_type="image/svg+xml")


@dataclass(frozen=True)
class _Panel:
    label: str
    lines: Sequence[Line]
    text: Callable[[float], str]
    logarithmic: bool = False
    ceilings: Sequence[ChartCeiling] = ()
    title: str = ""  # of a panel with a legend of its own


def seconds_pictures(seconds: Seconds) -> list[Chart]:
    """Charts without values are left out."""
    samples = sorted(seconds.samples, key=attrgetter("at_s"))
    if not samples:
        return []
    x = time_axis("", min(map(_begin, samples)), samples[-1].at_s, formatting.clock, TIME_STEPS)
    bands = (*_trials(samples), *(Band("x", span.from_s, span.to_s) for span in seconds.evidence))
    return [_chart(x, panel, bands) for panel in _panels(samples, seconds) if panel.lines]


def _panels(samples: Sequence[LiveSample], seconds: Seconds) -> Iterator[_Panel]:
    streams = _grouped(samples, lambda sample: (sample.host, sample.direction, sample.stream))
    of_device = [sample for sample in samples if sample.queue_depth is not None]
    devices = _grouped(of_device, lambda sample: (sample.host, "", sample.stream))
    hosts = list(dict.fromkeys(sample.host for sample in samples))
    lines = partial(_lines, hosts=hosts)
    yield _Panel(_rate_name(samples), lines(streams, "iops"), formatting.iops)
    bandwidth, ceilings = lines(streams, "bytes_per_s"), seconds.ceilings
    yield _Panel(METRICS["bytes_per_s"].label, bandwidth, formatting.bytes_per_s, ceilings=ceilings)
    latencies = [
        *lines(streams, "p50_ns", METRICS["latency_p50"].short, width=1),
        *lines(streams, "p99_ns", METRICS["latency_p99"].short, width=2),
        *lines(streams, "p999_ns", METRICS["latency_p999"].short, dash=DASHED),
    ]
    yield _Panel("Latency", latencies, formatting.latency, logarithmic=True)
    yield _Panel("Queue depth", lines(devices, "queue_depth", "queue depth"), formatting.significant)
    utilisation = lines(devices, "utilisation_percent", "utilisation")
    yield _Panel("Utilisation", utilisation, formatting.percent)
    yield from _telemetry(samples, seconds.sensors, hosts)


def _lines(
    groups: Mapping[Key, Sequence[LiveSample]],
    field: str,
    what: str = "",
    *,
    hosts: Sequence[str],
    width: float = 1.5,
    dash: str = "",
) -> list[Line]:
    """One for each group with values. Lines of further streams are fainter, those of further hosts dashed."""
    lines = []
    for (host, direction, stream), of_line in groups.items():
        marks = tuple(_marks(of_line, attrgetter(field)))
        if any(mark.y is not None for mark in marks):
            colour = DIRECTIONS.index(direction) if direction in DIRECTIONS else DEVICE
            dashes = dash or (f"{2 + hosts.index(host)} 2" if hosts.index(host) else "")
            name = _name(of_line[0], direction, what, hosts)
            lines.append(Line(name, colour, marks, width, dashes, f"{max(1 / 3, 0.75**stream):.2f}"))
    return lines


def _grouped(samples: Iterable[LiveSample], key: Callable[[LiveSample], Key]) -> dict[Key, list[LiveSample]]:
    groups: dict[Key, list[LiveSample]] = {}
    for sample in samples:
        groups.setdefault(key(sample), []).append(sample)
    return groups


def _chart(x: Axis, panel: _Panel, bands: tuple[Band, ...]) -> Chart:
    values = [mark.y for line in panel.lines for mark in line.marks if mark.y is not None]
    highest = [ceiling.value for ceiling in panel.ceilings]
    y = value_axis(panel.label, [*values, *highest], panel.text, logarithmic=panel.logarithmic)
    extra = tuple(ceiling_lines(panel.ceilings, x))
    return Chart(panel.title, x, y, tuple(panel.lines), Kind.CURVES, extra, bands, has_legend=bool(panel.title))


def _name(sample: LiveSample, direction: str, what: str, hosts: Sequence[str]) -> str:
    """`read p99 of stream 2 at storage1`"""
    stream = sample.stream_name or (f"stream {sample.stream + 1}" if sample.stream else "")
    parts = (direction, what, f"of {stream}" if stream else "", f"at {sample.host}" if len(hosts) > 1 else "")
    return " ".join(filter(None, parts))


def _rate_name(samples: Sequence[LiveSample]) -> str:
    """Transactions of a database are not I/Os."""
    directions = {sample.direction for sample in samples}
    if "transaction" not in directions:
        return METRICS["iops"].label
    return "Transactions/s" if len(directions) == 1 else f"{METRICS['iops'].label} and transactions/s"


def _begin(sample: LiveSample) -> float:
    return max(0.0, sample.at_s - sample.length_ms / 1000)


def _marks(samples: Sequence[LiveSample], value_of: Value) -> Iterator[Mark]:
    """With a gap between trials and where samples are missing."""
    before: LiveSample | None = None
    for sample in samples:
        same = before and (before.trial, before.attempt) == (sample.trial, sample.attempt)
        if before and not (same and _begin(sample) - before.at_s <= MAX_GAP_S):
            yield Mark(before.at_s, None)
        if sample.length_ms > LONG_MS:
            yield Mark(_begin(sample), value_of(sample))
        yield Mark(sample.at_s, value_of(sample))
        before = sample


def _trials(samples: Sequence[LiveSample]) -> Iterator[Band]:
    """Every second trial is shaded."""
    spans: dict[tuple[str, int, int], tuple[float, float]] = {}
    for sample in samples:
        key = sample.host, sample.trial, sample.attempt
        low, high = spans.get(key, (_begin(sample), sample.at_s))
        spans[key] = min(low, _begin(sample)), max(high, sample.at_s)
    if 1 < len(spans) <= MAX_SPANS:
        yield from (Band("x", low, high) for low, high in sorted(spans.values())[1::2])


def _telemetry(samples: Sequence[LiveSample], sensors: Sequence[LiveSensors], hosts: Sequence[str]) -> Iterator[_Panel]:
    """A chart for each kind of sensor. One that has values only now and then is drawn as one line."""
    places = {
        (each.host, each.trial, each.attempt, sensor.panel, sensor.name): place
        for each in sensors
        for place, sensor in enumerate(each.sensors)
    }
    read = [sample for sample in samples if sample.telemetry]
    for panel in dict.fromkeys(key[3] for key in places):
        names = list(dict.fromkeys(key[4] for key in places if key[3] == panel))
        lines = []
        for host in hosts:
            for colour, name in enumerate(names):
                samples_with_place = [
                    (sample, places[key])
                    for sample in read
                    if (key := (sample.host, sample.trial, sample.attempt, panel, name)) in places
                    and sample.host == host
                ]
                marks = tuple(
                    Mark(sample.at_s, value)
                    for sample, place in samples_with_place
                    if (value := sample.telemetry[place]) is not None
                )
                at = f" at {host}" if len(hosts) > 1 else ""
                if marks:
                    lines.append(Line(f"{name}{at}", colour, marks, 1.5))
        label, text = FORMATS[panel]
        yield _Panel("", lines, text, title=f"Telemetry: {label}")
