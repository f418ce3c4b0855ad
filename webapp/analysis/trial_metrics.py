"""Metrics of a whole trial that are read only when they are compared: CPU, power, temperature, share of the ceiling,
price.

A trial without the value has no such metric; it is never 0. The directions of a trial are one row, because the value is
of all of them. Of imported tests, only the CPU time per I/O is known.
"""

import dataclasses
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import reduce
from operator import or_
from typing import Any
from uuid import UUID

from django.db.models import Avg, Count, F, Max, Q, Sum
from msgspec.structs import replace

from webapp.analysis.dimensions import layout_of
from webapp.analysis.models import Price
from webapp.hosts.inventory.ceilings import bounds_of
from webapp.hosts.inventory.lock_groups import WORLD_WIDE
from webapp.hosts.models import Target
from webapp.hosts.selectors import BESIDE
from webapp.plans.factors import STREAM
from webapp.plans.points import hosts_at_once, target_count
from webapp.plans.streams import names_of
from webapp.results.metrics import CPU_PER_IO as IMPORTED
from webapp.results.metrics import METRICS, Metric, entered_metric
from webapp.results.models import BOTH, Result, Sample, StreamRun
from webapp.results.reading.rows import ResultRow
from webapp.runs.models import Run, Trial
from worker.contract.items import SensorKind
from worker.contract.workload import Pattern

# Totals of mixed workloads, which have one result per direction.

_WITHOUT_LATENCIES: Mapping[str, Any] = {
    "latency_kind": "",
    **dict.fromkeys(metric.column for metric in METRICS.values() if metric.shown_as == "latency" and metric.column),
}


def totals(rows: Sequence[ResultRow]) -> Sequence[ResultRow]:
    """One row for each trial, or for each of its named streams: IOPS and bandwidth are sums. A row of several
    directions has no latencies."""
    if len({row.direction for row in rows}) < 2:
        return rows
    by_trial: dict[tuple[int, int, object], list[ResultRow]] = {}
    for row in rows:
        by_trial.setdefault((row.source, row.trial, row.point.get(STREAM)), []).append(row)
    return tuple(_total(directions) for directions in by_trial.values())


def _total(directions: Sequence[ResultRow]) -> ResultRow:
    apart = [row for row in directions if row.direction != BOTH]  # a sum that the tool states too counts once
    directions = apart or directions
    first, *others = sorted(directions, key=lambda row: row.direction)
    if not others:
        return first
    return replace(
        first,
        iops=_sum([row.iops for row in directions]),
        bytes_per_s=_sum([row.bytes_per_s for row in directions]),
        direction=BESIDE.join(row.direction for row in (first, *others)),
        summed_ids=tuple(row.id for row in others),
        metrics={name: value for row in directions for name, value in row.metrics.items()},
        **_WITHOUT_LATENCIES,
    )


def _sum(values: Sequence[float | None]) -> float | None:
    """None if the value of a direction is unknown."""
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


# IOPS per price of the drives, from the prices that people entered for drive models.
#
# The directions of a trial are one row, because the price is that of all of them. A result has no value if the number
# of its drives or the price of one is unknown. Amounts in several currencies are not compared.

# Results with a metric of whole trials.


@dataclass(frozen=True)
class Observed:
    """`metric` may have a label and a unit that depend on the rows, such as the currency of prices."""

    rows: Sequence[ResultRow]
    metric: Metric
    notes: tuple[str, ...] = ()


# The number of drives under the targets of a trial, each drive counted once.
#
# Targets are on one drive if they have a lock key or a serial number in common: partitions of a disk, or a drive that
# several hosts share.


def drives_of_trials(trial_ids: Collection[str]) -> Mapping[str, int]:
    """By trial id, without trials whose number of drives is unknown. Two queries, or none without ids."""
    trials = Trial.objects.filter(pk__in=trial_ids).select_related("target").prefetch_related("further")
    by_trial = {str(trial.pk): _drives_of(trial) for trial in trials}
    return {pk: drives for pk, drives in by_trial.items() if drives}


def _drives_of(trial: Trial) -> int | None:
    targets = trial.all_targets
    return count_drives(targets) if len(targets) == target_count(trial.point) else None


def count_drives(targets: Sequence[Target]) -> int | None:
    """None if unknown: a target has no model, one of several hosts cannot tell a shared drive, or drives with
    different serial numbers have a key in common."""
    several_hosts = len({target.host_id for target in targets}) > 1
    if not all(target.model and _is_identified(target, several_hosts) for target in targets):
        return None
    drives: list[set[str]] = []  # the names of each
    for target in targets:
        names = {*target.lock_keys, *_serial(target)}
        alike = [drive for drive in drives if drive & names]
        drives = [drive for drive in drives if not drive & names] + [names.union(*alike)]
    serials = {serial for target in targets for serial in _serial(target)}
    return len(drives) if len(serials) <= len(drives) else None


def _is_identified(target: Target, several_hosts: bool) -> bool:
    """On several hosts, by a name that is stored in the drive."""
    if not several_hosts:
        return bool(target.lock_keys)
    return bool(target.serial) or any(key.startswith(WORLD_WIDE) for key in target.lock_keys)


def _serial(target: Target) -> list[str]:
    return [f"{target.model}:{target.serial}"] if target.serial else []


IOPS_PER_PRICE = Metric("iops_per_price", "IOPS per price", "IOPS per price", "", "", "number")


def with_iops_per_price(rows: Sequence[ResultRow]) -> Observed:
    """The rows with this metric, if it is known; notes with the prices, or why there is no value.

    One query, and two for trials with several targets.
    """
    prices = _prices_of(rows)
    currencies = sorted({price.currency for price in prices.values()})
    if len(currencies) != 1:
        return Observed(rows, IOPS_PER_PRICE, (_without_value(rows, currencies),))
    rows = totals(rows)
    values = _values(rows, prices)
    with_values = [
        replace(row, metrics={**row.metrics, IOPS_PER_PRICE.key: values[row.id]}) if row.id in values else row
        for row in rows
    ]
    return Observed(with_values, _in_currency(currencies[0]), (_prices_in_words(prices, currencies[0]),))


def has_prices(rows: Iterable[ResultRow]) -> bool:
    """Whether a drive model of these results has a price. One query."""
    return bool(_prices_of(rows))


def _in_currency(currency: str) -> Metric:
    label = f"IOPS per {currency}"
    return dataclasses.replace(IOPS_PER_PRICE, label=label, short=label, unit=f"IOPS/{currency}")


def _values(rows: Sequence[ResultRow], prices: Mapping[str, Price]) -> Mapping[int, float]:
    """By result id."""
    by_trial = drives_of_trials({row.trial_id for row in rows if row.trial_id and target_count(row.point) > 1})
    amounts = ((row, _amount(row, prices, by_trial)) for row in rows)
    return {row.id: row.iops / amount for row, amount in amounts if amount and row.iops is not None}


def _without_value(rows: Iterable[ResultRow], currencies: Sequence[str]) -> str:
    if currencies:
        return f"The prices are in {' and '.join(currencies)}. Enter them in one currency on the pages of the models."
    models = ", ".join(sorted({row.model for row in rows if row.model})) or "unknown"
    return f"No drive model of these results has a price ({models}). Enter prices on the pages of the models."


def _prices_in_words(prices: Mapping[str, Price], currency: str) -> str:
    texts = (f"{name} {price.amount:,} ({price.priced_on})" for name, price in sorted(prices.items()))
    return f"Prices of one drive, in {currency}: {', '.join(texts)}."


def _prices_of(rows: Iterable[ResultRow]) -> Mapping[str, Price]:
    prices = Price.objects.filter(kind="model", name__in={row.model for row in rows if row.model})
    return {price.name: price for price in prices}


def _amount(row: ResultRow, prices: Mapping[str, Price], by_trial: Mapping[str, int]) -> float | None:
    """The price of all drives of a result, which must be of one model."""
    price, drives = prices.get(row.model), _drives(row, by_trial)
    return float(price.amount) * drives if price and drives else None


def _drives(row: ResultRow, by_trial: Mapping[str, int]) -> int | None:
    """`by_trial`: the drives of trials with several targets. None if the number is unknown."""
    if row.layout:
        layout = layout_of(row.layout)
        return layout.drives * target_count(row.point) if layout else None
    return 1 if target_count(row.point) == 1 else by_trial.get(row.trial_id)


Values = Mapping[str, float]  # by trial id
MAX_SEARCHED = 1_000  # trials whose sensors, CPU time and ceilings are looked for
_MIXED = frozenset(pattern.value for pattern in Pattern if pattern.mixed)
_DRIVE = re.compile(r"(sd[a-z]+|nvme\d+n\d+|vd[a-z]+)$")
_POWER = (re.compile(r"server"), re.compile(r"psys"), re.compile(r"package"))  # the widest measurement first


def _cpu_per_io(rows: Sequence[ResultRow]) -> Values:
    """ns of CPU time of the engine's processes per I/O: (usr + sys) percent of one CPU × run time / I/Os."""
    totals = _totals(rows)
    streams = StreamRun.objects.filter(attempt__trial__in=list(totals), results__isnull=False).values_list("attempt")
    stream_runs = StreamRun.objects.filter(attempt__in=streams).values_list("attempt__trial").order_by()
    busy = stream_runs.annotate(
        percent=Sum(F("usr_cpu_percent") + F("sys_cpu_percent")), n=Count("id"), known=Count("usr_cpu_percent")
    )
    runtime_ms = {row.trial_id: row.runtime_ms or 0 for row in rows}
    return {
        str(trial): percent / 100 * runtime_ms[str(trial)] * 1e6 / totals[str(trial)]["ios"]
        for trial, percent, n, known in busy
        if n == known and totals[str(trial)]["ios"]
    }


def _iops_per_watt(rows: Sequence[ResultRow]) -> Values:
    watts = _power(rows)
    return {trial: total["iops"] / watts[trial] for trial, total in _totals(rows).items() if watts.get(trial)}


def _power(rows: Sequence[ResultRow]) -> Values:
    """W of the widest measurement, averaged over the trial."""
    return _sensor_means(rows, SensorKind.POWER, _power_sensors)


def _power_sensors(names: Sequence[str]) -> list[int]:
    """All of the widest kind: the server, else the platform, else its processor packages with their memory."""
    sensors = ([n for n, name in enumerate(names) if kind.match(name)] for kind in _POWER)
    return next((places for places in sensors if places), [])


def _temperature(rows: Sequence[ResultRow]) -> Values:
    """°C of the hottest drive under the target, averaged over the trial."""
    return _sensor_means(rows, SensorKind.TEMPERATURE, _drive_sensors, together=max)


def is_of_drive(name: str) -> bool:
    """Whether a sensor of a temperature is that of a drive, by its name; others are those of processors."""
    return bool(_DRIVE.match(name))


def _drive_sensors(names: Sequence[str]) -> list[int]:
    return [n for n, name in enumerate(names) if is_of_drive(name)]


def _ceiling_share(rows: Sequence[ResultRow]) -> Values:
    """Percent of the calculated limit of the target's links when its run started. The limit is that of one direction:
    of a mix, the direction with the higher bandwidth counts."""
    limits = _limits(rows)
    places = {row.trial_id: (row.run, row.target_name) for row in rows}
    measured = Result.objects.filter(trial__in=list(places), iops__isnull=False, bytes_per_s__isnull=False).order_by()
    return {
        str(trial): 100 * highest / next(iter(known))
        for trial, highest in measured.values_list("trial").annotate(highest=Max("bytes_per_s"))
        if len(known := limits.get(places[str(trial)], set())) == 1  # several drives had the name: unknown which one
    }


def _limits(rows: Sequence[ResultRow]) -> Mapping[tuple[int, str], set[float]]:
    """In bytes/s, by run and target. Three queries for each run."""
    runs: dict[int, list[ResultRow]] = {}
    for row in rows:
        runs.setdefault(row.run, []).append(row)
    limits: dict[tuple[int, str], set[float]] = {}
    for run, of_run in runs.items():
        for bound in bounds_of(moments_of(of_run), most=None):
            limits.setdefault((run, bound.target), set()).add(bound.bytes_per_s)
    return limits


CPU_PER_IO = Metric("cpu_per_io", "CPU per I/O", "CPU per I/O", "ns", "", "latency", lower_is_better=True)
_Reader = Callable[[Sequence[ResultRow]], Values]
_TABLE: tuple[tuple[Metric, _Reader], ...] = (
    (CPU_PER_IO, _cpu_per_io),
    (Metric("power", "Power", "Power", "W", "", "watts", lower_is_better=True), _power),
    (Metric("iops_per_watt", "IOPS per watt", "IOPS per watt", "IOPS/W", "", "number"), _iops_per_watt),
    (Metric("ceiling_share", "Share of ceiling", "Share of ceiling", "%", "", "percent"), _ceiling_share),
    (
        Metric("temperature", "Drive temperature", "Temperature", "°C", "", "celsius", lower_is_better=True),
        _temperature,
    ),
)
_READERS = {metric.key: read for metric, read in _TABLE}

# All metrics that can be compared.
COMPARED: Mapping[str, Metric] = {
    **METRICS, **{metric.key: metric for metric, _ in _TABLE}, IOPS_PER_PRICE.key: IOPS_PER_PRICE,
}  # fmt: skip


def known_metric(key: str) -> Metric | None:
    """A metric that can be compared, also one of values that were entered by hand."""
    return COMPARED.get(key) or entered_metric(key)


def metric_named(key: str) -> Metric:
    """The metric with a key that was checked before. Raises LookupError."""
    metric = known_metric(key)
    if metric is None:
        raise LookupError(key)
    return metric


def with_observed(rows: Sequence[ResultRow], metric: Metric) -> Observed:
    """The rows with this metric, if it is one of this module; then one for each trial. At most five queries, but for
    shares of ceilings.

    Not for trials on several hosts: their results refer only to the first host.
    """
    if metric is IOPS_PER_PRICE:
        return with_iops_per_price(rows)
    if metric.key not in _READERS:
        return Observed(rows, metric)
    rows = totals(rows)
    values = {**_READERS[metric.key]([row for row in rows if row.trial_id and _undivided(row.point)])}
    if metric.key == CPU_PER_IO.key:
        values |= {_test(row): row.metrics[IMPORTED] for row in rows if row.imported and IMPORTED in row.metrics}
    with_values = [
        replace(row, metrics={**row.metrics, metric.key: values[_test(row)]}) if _test(row) in values else row
        for row in rows
    ]
    return Observed(with_values, metric, tuple(_notes(rows, metric)))


def metrics_of(rows: Sequence[ResultRow]) -> frozenset[str]:
    """The keys of all metrics that these rows can be compared by. A metric of a whole trial counts if its parts were
    measured; many trials are not searched for them. At most eight queries."""
    keys = {key for key, metric in METRICS.items() if any(metric.of(row) is not None for row in rows)}
    keys |= {key for row in rows for key in row.metrics}
    trials = {UUID(row.trial_id) for row in rows if row.trial_id}
    if len(trials) > MAX_SEARCHED:
        return frozenset({*keys, *COMPARED})
    if IMPORTED in keys or StreamRun.objects.filter(attempt__trial__in=trials, usr_cpu_percent__isnull=False).exists():
        keys.add(CPU_PER_IO.key)
    if "bytes_per_s" in keys and bounds_of(moments_of(row for row in rows if row.trial_id), most=1):
        keys.add("ceiling_share")
    if "iops" in keys and has_prices(rows):
        keys.add(IOPS_PER_PRICE.key)
    return frozenset({*keys, *_sensed(trials)})


def _sensed(trials: Iterable[UUID]) -> Iterator[str]:
    """The metrics of sensors that the hosts of these trials had."""
    runs = StreamRun.objects.filter(attempt__trial__in=trials).exclude(sensors=[]).order_by()
    sensors = [tuple(sensor) for known in runs.values_list("sensors", flat=True).distinct() for sensor in known]
    names = {kind: [name for its_kind, name in sensors if its_kind == kind] for kind in SensorKind}
    if _power_sensors(names[SensorKind.POWER]):
        yield from ("power", "iops_per_watt")
    if _drive_sensors(names[SensorKind.TEMPERATURE]):
        yield "temperature"


def _notes(rows: Sequence[ResultRow], metric: Metric) -> Iterator[str]:
    if any(row.point.get("pattern") in _MIXED for row in rows):
        yield f"For mixed workloads, {metric.label} is of the whole trial, also if a filter chooses one direction."


def _test(row: ResultRow) -> str:
    """The id of a trial, or of an imported test."""
    return row.trial_id or f"{row.imported} {row.trial}"


def _undivided(point: Mapping[str, object]) -> bool:
    """What the whole trial used cannot be divided among streams with different workloads. On several hosts the results
    refer only to the first one."""
    return len(names_of(point)) < 2 and hosts_at_once(point) == 1


def moments_of(rows: Iterable[ResultRow]) -> Mapping[str, datetime]:
    """By name of a target: when the newest of its runs started."""
    known = list(rows)
    runs = Run.objects.filter(number__in={row.run for row in known})
    started = {run.number: run.started_at or run.created_at for run in runs}
    measured = sorted((row for row in known if row.run in started), key=lambda row: started[row.run])
    return {row.target_name: started[row.run] for row in measured}


def _totals(rows: Sequence[ResultRow]) -> Mapping[str, Mapping[str, float]]:
    """Sums over all directions of each trial, also those that a filter leaves out. Trials without I/O have none."""
    totals_by_trial = Result.objects.filter(trial__in={row.trial_id for row in rows}).order_by().values("trial")
    summed = totals_by_trial.annotate(ios=Sum("ios"), iops=Sum("iops"))
    return {
        str(each["trial"]): {name: float(each[name] or 0) for name in ("ios", "iops")}
        for each in summed
        if each["iops"] is not None
    }


def _sensor_means(
    rows: Sequence[ResultRow],
    kind: SensorKind,
    chosen: Callable[[Sequence[str]], list[int]],
    together: Callable[[Iterable[float]], float] = sum,
) -> Values:
    """The means of the chosen sensors over the time that the result of each trial covers, combined by `together`."""
    results = Result.objects.filter(id__in=[row.id for row in rows]).values_list("stream_run__attempt")
    streams = StreamRun.objects.filter(attempt__in=results).exclude(sensors=[])
    places: dict[tuple[int, ...], list[Q]] = {}
    trials: dict[UUID, str] = {}
    for attempt, trial, sensors, stopped in streams.values_list("attempt", "attempt__trial", "sensors", "stopped"):
        of_kind = [(place, name) for place, (its_kind, name) in enumerate(sensors) if its_kind == kind]
        picked = tuple(of_kind[n][0] for n in chosen([name for _, name in of_kind]))
        if picked:
            places.setdefault(picked, []).append(_covered(attempt, stopped))
            trials[attempt] = str(trial)
    values: dict[str, float] = {}
    for picked, attempts in places.items():
        means = {f"mean_{place}": Avg(f"telemetry__{place}") for place in picked}
        covered = Sample.objects.alias(middle_ms=F("offset_ms") - F("length_ms") / 2).filter(reduce(or_, attempts))
        samples = covered.order_by().values_list("attempt").annotate(**means)
        for attempt, *means_of_trial in samples:
            if None not in means_of_trial:
                values[trials[attempt]] = together(means_of_trial)
    return values


def _covered(attempt: UUID, stopped: Mapping[str, Any] | None) -> Q:
    """The samples of a result: those in the window of a stop rule, or all."""
    whole = Q(attempt=attempt)
    if stopped is None or not stopped["reached"]:
        return whole
    return whole & Q(middle_ms__gte=stopped["from_ms"], middle_ms__lt=stopped["to_ms"])
