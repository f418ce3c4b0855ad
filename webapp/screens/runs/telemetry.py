"""Telemetry of a run or trial as pages show it: for many cores, their mean and the busiest core."""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from uuid import UUID

from webapp.core import formatting
from webapp.results.models import Sample, StreamRun
from webapp.runs.models import Trial
from webapp.screens.payloads import LiveSensor, LiveSensors
from worker.contract.items import SensorKind

Values = Sequence[float | None]
CPU = "cpu"
_CPU_LABELS = {
    SensorKind.CPU_USER: "user",
    SensorKind.CPU_SYSTEM: "system",
    SensorKind.CPU_IRQ: "interrupts",
    SensorKind.CPU_IOWAIT: "I/O wait",
    SensorKind.CPU_STEAL: "stolen",
}
_IDLE = SensorKind.CPU_IOWAIT  # a core that waits for I/O is free for other work
BUSIEST = "busiest core"


@dataclass(frozen=True)
class Lines:
    """The lines in the telemetry panel for the sensors of an attempt."""

    sensors: tuple[LiveSensor, ...]
    _count: int  # of values in a sample
    _plain: tuple[int, ...]  # indexes of values that are shown unchanged
    _shares: tuple[tuple[int, ...], ...]  # indexes of one CPU share over all cores
    _cores: tuple[tuple[int, ...], ...]  # indexes of the shares of one core, without I/O wait

    @classmethod
    def of(cls, sensors: Sequence[Sequence[str]]) -> "Lines":
        shares: dict[str, list[int]] = {}
        cores: dict[str, list[int]] = {}
        plain: list[int] = []
        for index, (kind, name) in enumerate(sensors):
            if kind not in _CPU_LABELS:
                plain.append(index)
                continue
            shares.setdefault(kind, []).append(index)
            if kind != _IDLE:
                cores.setdefault(name, []).append(index)
        cpu = [f"{_CPU_LABELS[SensorKind(kind)]}, mean of all cores" for kind in shares]
        names = [(sensors[index][0], sensors[index][1]) for index in plain]
        names += [(CPU, name) for name in [*cpu, *([BUSIEST] if cores else [])]]
        return cls(
            tuple(LiveSensor(panel=panel, name=name) for panel, name in names),
            len(sensors),
            tuple(plain),
            tuple(map(tuple, shares.values())),
            tuple(map(tuple, cores.values())),
        )

    def values(self, raw: Values | None) -> tuple[float | None, ...]:
        """The values of the lines for one second; () without values."""
        if not raw or len(raw) != self._count:
            return ()
        shown = [raw[index] for index in self._plain]
        shown += [_mean([raw[index] for index in share]) for share in self._shares]
        if self._cores:
            known = (core for core in self._cores if any(raw[index] is not None for index in core))
            shown.append(max((sum(raw[index] or 0 for index in core) for core in known), default=None))
        return tuple(None if value is None else round(value, 1) for value in shown)


def _mean(values: Values) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def lines_of(rows: Iterable[Sample]) -> Mapping[UUID, Lines]:
    """The lines of each attempt in the samples, by attempt id; attempts without telemetry are missing."""
    attempts = {row.attempt_id for row in rows if row.telemetry}
    if not attempts:
        return {}
    streams = StreamRun.objects.filter(attempt__in=attempts).exclude(sensors=[])
    return {attempt: Lines.of(sensors) for attempt, sensors in streams.values_list("attempt_id", "sensors")}


def live_sensors(rows: Iterable[Sample], lines: Mapping[UUID, Lines]) -> tuple[LiveSensors, ...]:
    """The names of the lines, once for each attempt."""
    attempts = {row.attempt_id: row.attempt for row in rows if row.attempt_id in lines}
    return tuple(
        LiveSensors(
            host=attempt.host.slug,
            trial=attempt.trial.number,
            attempt=attempt.number,
            sensors=lines[attempt_id].sensors,
        )
        for attempt_id, attempt in attempts.items()
        if attempt.trial is not None
    )


# ---- one trial


@dataclass(frozen=True)
class Spread:
    """One sensor over a trial, formatted."""

    kind: str
    name: str
    mean: str
    minimum: str
    maximum: str


@dataclass(frozen=True)
class Core:
    """Mean shares of one core over a trial, formatted, in the order of `Summary.shares`."""

    name: str
    shares: tuple[str, ...]
    busiest: str  # in its busiest second


@dataclass(frozen=True)
class Summary:
    sensors: tuple[Spread, ...] = ()
    shares: tuple[str, ...] = ()
    cores: tuple[Core, ...] = ()

    @property
    def untried(self) -> bool:
        """Whether any sensor was implemented from documentation only, without hardware to test it."""
        return any(each.kind in _UNTRIED for each in self.sensors)


_UNTRIED = ("temperature", "power")
FORMATS: Mapping[str, tuple[str, Callable[[float], str]]] = {  # by panel
    CPU: ("CPU", formatting.percent),
    SensorKind.INTERRUPTS: ("interrupts", lambda value: f"{formatting.iops(value)}/s"),
    SensorKind.TEMPERATURE: ("temperature", lambda value: f"{formatting.significant(value)} °C"),
    SensorKind.POWER: ("power", lambda value: f"{formatting.significant(value)} W"),
    SensorKind.MEMORY: ("memory", lambda value: formatting.bytes_binary(round(value))),
    SensorKind.UTILISATION: ("utilisation", formatting.percent),
    SensorKind.QUEUE_DEPTH: ("queue depth", formatting.significant),
}


def summary(trial: Trial) -> Summary:
    """All sensors of the newest attempt with telemetry, over all its seconds."""
    stream = StreamRun.objects.filter(attempt__trial=trial).exclude(sensors=[]).order_by("-attempt__number").first()
    if stream is None:
        return Summary()
    rows = Sample.objects.filter(attempt=stream.attempt_id, stream=stream.stream, telemetry__isnull=False)
    taken = rows.order_by("offset_ms").values_list("telemetry", flat=True)
    seconds = [values for values in taken if values is not None and len(values) == len(stream.sensors)]
    columns = {(kind, name): [second[index] for second in seconds] for index, (kind, name) in enumerate(stream.sensors)}
    spreads = [_spread(kind, name, values) for (kind, name), values in columns.items() if kind not in _CPU_LABELS]
    kinds = [kind for kind in _CPU_LABELS if any(kind == measured for measured, _ in columns)]
    names = dict.fromkeys(name for kind, name in columns if kind in _CPU_LABELS)
    return Summary(
        sensors=tuple(spread for spread in spreads if spread is not None),
        shares=tuple(_CPU_LABELS[kind] for kind in kinds),
        cores=tuple(_core(name, {kind: columns.get((kind, name), []) for kind in kinds}) for name in names),
    )


def _spread(kind: str, name: str, values: Values) -> Spread | None:
    known = [value for value in values if value is not None]
    if not known or kind not in FORMATS:
        return None
    label, text = FORMATS[kind]
    return Spread(label, name, text(sum(known) / len(known)), text(min(known)), text(max(known)))


def _core(name: str, shares: Mapping[SensorKind, Values]) -> Core:
    working = (values for kind, values in shares.items() if kind != _IDLE and values)
    busy = [sum(value or 0 for value in second) for second in zip(*working, strict=True)]
    means = (_mean(values) for values in shares.values())
    return Core(name, tuple(map(formatting.percent, means)), formatting.percent(max(busy, default=None)))
