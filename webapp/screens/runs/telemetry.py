"""What the host did beside the I/O, as pages show it: of many cores their mean and the busiest one."""

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
_CPU_WORDS = {
    SensorKind.CPU_USER: "user",
    SensorKind.CPU_SYSTEM: "system",
    SensorKind.CPU_IRQ: "interrupts",
    SensorKind.CPU_IOWAIT: "waiting for I/O",
    SensorKind.CPU_STEAL: "stolen",
}
_IDLE = SensorKind.CPU_IOWAIT  # a core that only waits for I/O is free for others
BUSIEST = "busiest core"


@dataclass(frozen=True)
class Lines:
    """The lines of an attempt's panels, from its sensors."""

    sensors: tuple[LiveSensor, ...]
    _count: int  # of values as they are sent
    _plain: tuple[int, ...]  # places of values shown as they are
    _shares: tuple[tuple[int, ...], ...]  # places of a share, of all cores
    _cores: tuple[tuple[int, ...], ...]  # places of a core's shares, without waiting

    @classmethod
    def of(cls, sensors: Sequence[Sequence[str]]) -> "Lines":
        shares: dict[str, list[int]] = {}
        cores: dict[str, list[int]] = {}
        plain: list[int] = []
        for place, (kind, name) in enumerate(sensors):
            if kind not in _CPU_WORDS:
                plain.append(place)
                continue
            shares.setdefault(kind, []).append(place)
            if kind != _IDLE:
                cores.setdefault(name, []).append(place)
        cpu = [f"{_CPU_WORDS[SensorKind(kind)]}, mean of all cores" for kind in shares]
        names = [(sensors[place][0], sensors[place][1]) for place in plain]
        names += [(CPU, name) for name in [*cpu, *([BUSIEST] if cores else [])]]
        return cls(
            tuple(LiveSensor(panel=panel, name=name) for panel, name in names),
            len(sensors),
            tuple(plain),
            tuple(map(tuple, shares.values())),
            tuple(map(tuple, cores.values())),
        )

    def values(self, raw: Values | None) -> tuple[float | None, ...]:
        """A second's values for the lines; () where it has none."""
        if not raw or len(raw) != self._count:
            return ()
        shown = [raw[place] for place in self._plain]
        shown += [_mean([raw[place] for place in share]) for share in self._shares]
        if self._cores:
            there = (core for core in self._cores if any(raw[place] is not None for place in core))
            shown.append(max((sum(raw[place] or 0 for place in core) for core in there), default=None))
        return tuple(None if value is None else round(value, 1) for value in shown)


def _mean(values: Values) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) / len(known) if known else None


def lines_of(rows: Iterable[Sample]) -> Mapping[UUID, Lines]:
    """The lines of each attempt that the samples are of and that has any."""
    attempts = {row.attempt_id for row in rows if row.telemetry}
    if not attempts:
        return {}
    found = StreamRun.objects.filter(attempt__in=attempts).exclude(sensors=[]).values_list("attempt_id", "sensors")
    return {attempt: Lines.of(sensors) for attempt, sensors in found}


def live_sensors(rows: Iterable[Sample], lines: Mapping[UUID, Lines]) -> tuple[LiveSensors, ...]:
    """Names, once for each attempt."""
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


# ---- a trial as a whole


@dataclass(frozen=True)
class Spread:
    """One sensor over a trial, in words."""

    what: str
    name: str
    mean: str
    lowest: str
    highest: str


@dataclass(frozen=True)
class Core:
    """Means of one core's shares over a trial, in words, in the order of `Summary.shares`."""

    name: str
    shares: tuple[str, ...]
    busiest: str  # its busiest second


@dataclass(frozen=True)
class Summary:
    sensors: tuple[Spread, ...] = ()
    shares: tuple[str, ...] = ()
    cores: tuple[Core, ...] = ()

    @property
    def untried(self) -> bool:
        """Whether any of it was read by documentation alone: no hardware with such sensors was at hand."""
        return any(each.what in _UNTRIED for each in self.sensors)


_UNTRIED = ("temperature", "power")
_WORDS: Mapping[str, tuple[str, Callable[[float], str]]] = {
    SensorKind.INTERRUPTS: ("interrupts", lambda value: f"{formatting.iops(value)}/s"),
    SensorKind.TEMPERATURE: ("temperature", lambda value: f"{formatting.significant(value)} °C"),
    SensorKind.POWER: ("power", lambda value: f"{formatting.significant(value)} W"),
    SensorKind.MEMORY: ("memory", lambda value: formatting.bytes_binary(round(value))),
    SensorKind.UTILISATION: ("utilisation", formatting.percent),
    SensorKind.QUEUE_DEPTH: ("queue depth", formatting.significant),
}


def summary(trial: Trial) -> Summary:
    """Every sensor of the newest attempt that has any, over its seconds."""
    stream = StreamRun.objects.filter(attempt__trial=trial).exclude(sensors=[]).order_by("-attempt__number").first()
    if stream is None:
        return Summary()
    rows = Sample.objects.filter(attempt=stream.attempt_id, stream=stream.stream, telemetry__isnull=False)
    taken = rows.order_by("second").values_list("telemetry", flat=True)
    seconds = [values for values in taken if values is not None and len(values) == len(stream.sensors)]
    columns = {(kind, name): [second[place] for second in seconds] for place, (kind, name) in enumerate(stream.sensors)}
    spreads = [_spread(kind, name, values) for (kind, name), values in columns.items() if kind not in _CPU_WORDS]
    kinds = [kind for kind in _CPU_WORDS if any(kind == found for found, _ in columns)]
    names = dict.fromkeys(name for kind, name in columns if kind in _CPU_WORDS)
    return Summary(
        sensors=tuple(spread for spread in spreads if spread is not None),
        shares=tuple(_CPU_WORDS[kind] for kind in kinds),
        cores=tuple(_core(name, {kind: columns.get((kind, name), []) for kind in kinds}) for name in names),
    )


def _spread(kind: str, name: str, values: Values) -> Spread | None:
    known = [value for value in values if value is not None]
    if not known or kind not in _WORDS:
        return None
    what, words = _WORDS[kind]
    return Spread(what, name, words(sum(known) / len(known)), words(min(known)), words(max(known)))


def _core(name: str, shares: Mapping[SensorKind, Values]) -> Core:
    working = (values for kind, values in shares.items() if kind != _IDLE)
    busy = [sum(value or 0 for value in second) for second in zip(*working, strict=True)]
    means = (_mean(values) for values in shares.values())
    return Core(name, tuple(map(formatting.percent, means)), formatting.percent(max(busy, default=None)))
