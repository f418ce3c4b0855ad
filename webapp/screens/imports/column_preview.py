"""How the first row of a CSV file is read, before anything is stored."""

from webapp.core.errors import Refusal
from webapp.imports import formats
from webapp.imports.columns import read_columns
from webapp.imports.formats import PLAIN_CSV, plain_csv
from webapp.imports.measurement import Measurement
from webapp.plans.factors import FACTORS
from webapp.results.metrics import METRICS
from webapp.screens.imports.payloads import ColumnPreview

MAX_HEAD = 64 * 1024
_SHOWN_COLUMNS = 60


def column_preview(stated: str, head: str) -> ColumnPreview:
    """`stated` are lines `column = field`, `head` the first lines of a file. Without columns if the file is no CSV or
    the table of a known tool."""
    rows = [line for line in head[:MAX_HEAD].replace("\r\n", "\n").split("\n") if line.strip()][:2]
    names = plain_csv.head_of(rows[0]) if rows else []
    if len(names) < 2 or formats.recognised(head[:MAX_HEAD]) not in ("", PLAIN_CSV):
        return ColumnPreview(columns=(), problem="", row="")
    columns = tuple(name[:60] for name in names[:_SHOWN_COLUMNS])
    try:
        (first,) = plain_csv.parse("\n".join(rows), read_columns(stated))
    except Refusal as refusal:
        return ColumnPreview(columns=columns, problem=refusal.message, row="")
    return ColumnPreview(columns=columns, problem="", row=_in_words(first))


def _in_words(measured: Measurement) -> str:
    """`read · Block size: 4 KiB · IOPS: 10.2k · p99 latency: 180 µs · firmware: A1`"""
    latency = measured.latency
    values = {
        "iops": measured.iops, "bytes_per_s": measured.bytes_per_s, "latency_min": latency.min_ns,
        "latency_mean": latency.mean_ns, "latency_max": latency.max_ns, "latency_stddev": latency.stddev_ns,
    }  # fmt: skip
    factors = measured.factors
    return " · ".join(
        [
            measured.direction.value if measured.direction else "read + write",
            *([f"name: {measured.name}"] if measured.name else []),
            *(f"{factor.label}: {factor.format(factors[name])}" for name, factor in FACTORS.items() if name in factors),
            *(
                f"{METRICS[key].label}: {METRICS[key].format(value)}"
                for key, value in values.items()
                if value is not None
            ),
            *(
                f"p{percent:g} latency: {METRICS['latency_p99'].format(ns)}"
                for percent, ns in latency.percentiles.items()
            ),
            *(f"{name}: {text}" for name, text in measured.other.items()),
        ]
    )
