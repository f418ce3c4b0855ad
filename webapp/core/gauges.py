"""Metrics of a running installation for Prometheus.

An app with metrics has a module `gauges.py` that registers a function. The function runs on each request to
/metrics. Format: https://prometheus.io/docs/instrumenting/exposition_formats/ (text, version 0.0.4).
"""

import logging
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum

import redis
from django.db import DatabaseError

from webapp.core import heartbeats, tally
from webapp.core.models import Counter

log = logging.getLogger(__name__)

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"


class Kind(StrEnum):
    GAUGE = "gauge"
    COUNTER = "counter"


@dataclass(frozen=True)
class Reading:
    """One number; `labels` distinguish it within its family."""

    value: float
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class Family:
    """All readings of one metric. The name contains the unit, as Prometheus recommends."""

    name: str
    help: str
    readings: tuple[Reading, ...]
    kind: Kind = Kind.GAUGE


Collector = Callable[[], Iterable[Family]]
_collectors: list[Collector] = []


def collector(function: Collector) -> Collector:
    """Register a function that reads families from the database or the broker."""
    _collectors.append(function)
    return function


def exposition() -> str:
    """All families as text. A collector that fails is left out and counted in sweetspot_collectors_failed."""
    families: list[Family] = []
    failed = 0
    for collect in _collectors:
        try:
            families += collect()
        except (DatabaseError, redis.RedisError, OSError) as error:
            failed += 1
            log.warning("some metrics cannot be read: %s", error)
    families.append(
        Family("sweetspot_collectors_failed", "Collectors that failed during this request", (Reading(failed),))
    )
    return "\n".join(line for family in families for line in _lines(family)) + "\n"


def _lines(family: Family) -> Iterator[str]:
    yield f"# HELP {family.name} {family.help}"
    yield f"# TYPE {family.name} {family.kind}"
    for reading in family.readings:
        labels = ",".join(f'{name}="{_escaped(value)}"' for name, value in reading.labels.items())
        yield f"{family.name}{{{labels}}} {reading.value:.17g}" if labels else f"{family.name} {reading.value:.17g}"


def _escaped(value: str) -> str:
    return value.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")


@collector
def periodic_tasks() -> list[Family]:
    ages = tuple(Reading(age_s, {"task": name}) for name, age_s in heartbeats.ages_s().items())
    return [Family("sweetspot_task_silent_seconds", "Seconds since the periodic task last ran", ages)]


@collector
def counted() -> list[Family]:
    """Counters in the database, which all processes of the server share."""
    tally.write(at_once=True)
    rows = Counter.objects.filter(name=Counter.REFUSED).order_by("label").values_list("label", "value")
    readings = tuple(Reading(value, {"reason": label}) for label, value in rows)
    words = "Refused reports, or refused attempts in a report, by reason"
    return [Family("sweetspot_refused_reports_total", words, readings, Kind.COUNTER)]
