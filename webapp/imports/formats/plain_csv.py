"""Any CSV with a head: a mapping says what each column is.

A field is the name of a factor ("block_size"), "direction", "name", a label of LABELS, or a result with its unit: see
RESULTS. Columns with a field's name need no mapping. Values of factors are read as in a plan (`4k`, `randread`, `on`).
"""

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence

import msgspec

from webapp.imports.measurement import Latency, Measurement, with_repeats
from webapp.imports.values import (
    GIB,
    KIB,
    MEGABYTE,
    MIB,
    MS,
    SECOND,
    US,
    ImportRefused,
    Row,
    fields,
    lines,
    number,
    rows,
)
from webapp.plans.factors import FACTORS
from webapp.plans.values import Value, ValueRefused
from worker.contract.items import Direction
from worker.contract.workload import Pattern

TOOL = "CSV"
# field -> (part of a measurement, factor to the stored unit)
RESULTS: Mapping[str, tuple[str, float]] = {
    "iops": ("iops", 1),
    "kiops": ("iops", 1000),
    "bytes_per_s": ("bytes_per_s", 1),
    "kib_per_s": ("bytes_per_s", KIB),
    "mib_per_s": ("bytes_per_s", MIB),
    "gib_per_s": ("bytes_per_s", GIB),
    "mb_per_s": ("bytes_per_s", MEGABYTE),
    "gb_per_s": ("bytes_per_s", 1000 * MEGABYTE),
    **{
        f"latency_{name}_{unit}": (f"{name}_ns", scale)
        for name in ("min", "mean", "max", "stddev")
        for unit, scale in (("ns", 1.0), ("us", US), ("ms", MS), ("s", SECOND))
    },
}
_UNITS = {"ns": 1.0, "us": US, "ms": MS, "s": SECOND}
MAX_CELLS = 1_000_000  # their texts are kept
_OTHER_UNIT = 1.5  # factor between the bandwidth and IOPS x block size, from which on a unit may be wrong
_SHOWN = 20  # columns in a message
_PERCENTILE = re.compile(r"latency_p(\d{1,2}(?:\.\d{1,6})?)_(ns|us|ms|s)")
_THOUSANDS = re.compile(r"\d{1,3}\.\d{3}", re.ASCII)
_DELIMITERS = (",", ";", "\t")
LABELS = ("host", "controller", "drive", "serial", "layout")  # their columns are text, as all that are no field
FIELDS_IN_WORDS = (
    "Fields are results with their unit (`iops`, `kiops`, `bytes_per_s`, `kib_per_s`, `mib_per_s`, `gib_per_s`, "
    "`mb_per_s`, `gb_per_s`, `latency_mean_us`, `latency_p99_ms`; also min, max and stddev, and ns and s), "
    "factors of plans (`pattern`, `block_size`, `iodepth`, `numjobs`, …), `direction`, `name`, and the labels `host`, "
    "`controller`, `drive`, `serial` and `layout`."
)


def is_field(name: str) -> bool:
    """Whether a column with this name needs no mapping. A layout is a label here, not the factor."""
    if name == "layout":
        return False
    return name in RESULTS or name in FACTORS or name in ("direction", "name") or bool(_PERCENTILE.fullmatch(name))


def can_be(field: str) -> bool:
    """Whether a mapping may name this field."""
    return is_field(field) or field in LABELS


def part_of(field: str) -> str:
    """What a field states, without its unit: `mib_per_s` and `mb_per_s` are the same."""
    if percentile := _PERCENTILE.fullmatch(field):
        return f"p{float(percentile[1])}"
    return RESULTS[field][0] if field in RESULTS else field


def sniff(head: str, mapping: Collection[str] = ()) -> bool:
    """Whether the first line has a column of the mapping, or columns named like fields, one of them a result."""
    names = head_of(head)
    if not mapping:
        return len(names) > 1 and any(name in RESULTS for name in names) and sum(map(is_field, names)) > 1
    return any(name in mapping for name in names) or sniff(head)


def head_of(text: str) -> list[str]:
    """The names of the columns in the first line; empty if it is no line of CSV."""
    try:
        return _names(text.lstrip("\n").split("\n", 1)[0].strip())
    except ImportRefused:
        return []


def columns_in_words(names: Collection[str]) -> str:
    shown = ", ".join(f"`{name[:40]}`" for name in [*names][:_SHOWN])
    return shown + (f" and {len(names) - _SHOWN} others" if len(names) > _SHOWN else "")


def problem_of(head: str, mapping: Collection[str] = ()) -> str:
    """Why a text that looks like CSV is not read, "" if it does not look like CSV."""
    names, second = head_of(head), head.strip("\n").split("\n", 2)[1:2]
    cells = fields(second[0], _delimiter(head.lstrip("\n").split("\n", 1)[0])) if second else []
    if len(names) < 2 or len(cells) != len(names) or not any(map(_is_number, cells)) or any(map(_is_number, names)):
        return ""
    if mapping:
        return f"The CSV has none of the stated columns {columns_in_words(mapping)}. It has {columns_in_words(names)}."
    return (
        f"Fields of this CSV are not known. It has the columns {columns_in_words(names)}. Import it "
        "again, and state in “Columns of CSV files” (`--column` of the commands) which of them are a result, its "
        "direction or pattern, and factors."
    )


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"[\d.,]{1,30}", text, re.ASCII))


def parse(text: str, mapping: Mapping[str, str] | None = None) -> list[Measurement]:
    """`mapping` is column -> field, and counts before a column with the field's name; other columns are kept as text.
    A CSV that needs no mapping may lack all of its columns. Raises ImportRefused."""
    text_lines = [line for line in lines(text) if line.strip()]
    if len(text_lines) < 2:
        raise ImportRefused("The CSV needs a head and at least one row.")
    delimiter = _delimiter(text_lines[0])
    names = _names(text_lines[0])
    if (cells := len(names) * len(text_lines)) > MAX_CELLS:
        raise ImportRefused(f"The CSV has {cells:,} fields, more than {MAX_CELLS:,}. Split it or remove columns.")
    twice = next((name for name, count in Counter(names).items() if name and count > 1), "")
    if twice:
        raise ImportRefused(f"The CSV has two columns `{twice[:60]}`. Remove or rename one.")
    own_names = sniff(text_lines[0]) and not any(name in names for name in mapping or {})
    known = _known(names, {} if own_names else mapping or {})
    table = list(rows(names, text_lines[1:], delimiter))
    doubts = _thousands(table, known) if delimiter == ";" else ()
    measured = (_measured(row, known) for row in table)
    return with_repeats(
        msgspec.structs.replace(measurement, notes=(*measurement.notes, *doubts)) for measurement in measured
    )


def _thousands(table: Sequence[Row], known: Mapping[str, str]) -> tuple[str, ...]:
    """Where the decimal point is a comma, CSV has semicolons, and 1.000 may mean a thousand."""
    columns = [column for column, field in known.items() if field in RESULTS or _PERCENTILE.fullmatch(field)]
    example = next((row[name] for row in table for name in columns if _THOUSANDS.fullmatch(row[name])), None)
    return (f"The point in numbers such as {example} is read as a decimal point.",) if example else ()


def _known(names: list[str], mapping: Mapping[str, str]) -> dict[str, str]:
    """Column -> field. Raises ImportRefused."""
    if wrong := [field for field in mapping.values() if not can_be(field)]:
        raise ImportRefused(f"`{wrong[0][:60]}` is not a field. {FIELDS_IN_WORDS}")
    if missing := [name for name in mapping if name not in names]:
        raise ImportRefused(f"The CSV has no column `{missing[0][:60]}`. It has {columns_in_words(names)}.")
    stated = {part_of(field) for field in mapping.values()}
    by_name = {name: name for name in names if is_field(name) and part_of(name) not in stated}
    known = {**by_name, **mapping}
    columns_by_part = Counter(map(part_of, known.values()))
    if twice := [name for name, field in known.items() if columns_by_part[part_of(field)] > 1]:
        raise ImportRefused(f"The columns {columns_in_words(twice)} state the same value. Remove all but one.")
    return known


def _delimiter(line: str) -> str:
    return max(_DELIMITERS, key=line.count)


def _names(line: str) -> list[str]:
    return fields(line, _delimiter(line))


class Figures(msgspec.Struct, frozen=True):
    """What the fields of a row say, in stored units."""

    factors: Mapping[str, Value]
    rates: Mapping[str, float]  # "iops", "bytes_per_s"
    latency: Latency


def figures(row: Row, known: Mapping[str, str]) -> Figures:
    """`known` is column -> field. Raises ImportRefused."""
    rates: dict[str, float] = {}
    latency: dict[str, float] = {}
    percentiles: dict[float, float] = {}
    factors: dict[str, Value] = {}
    for column, field in known.items():
        text = row[column]
        if not text:
            continue
        if field in FACTORS:
            factors[field] = factor(field, text)
        elif percentile := _PERCENTILE.fullmatch(field):
            percentiles[float(percentile[1])] = number(text, column) * _UNITS[percentile[2]]
        elif field in RESULTS:
            part, scale = RESULTS[field]
            (latency if part.endswith("_ns") else rates)[part] = number(text, column) * scale
    stated = Latency(**latency, percentiles=percentiles)  # type: ignore[arg-type]
    return Figures(factors, rates, stated)


def _measured(row: Row, known: Mapping[str, str]) -> Measurement:
    row_figures = figures(row, known)
    if not row_figures.rates and row_figures.latency == Latency():
        raise ImportRefused("A row has no result: no IOPS, no bandwidth and no latency.")
    texts = {field: row[column] for column, field in known.items() if field in ("direction", "name", *LABELS)}
    labels = {name: texts[name][:500] for name in LABELS if texts.get(name)}
    return Measurement(
        tool=TOOL,
        name=texts.get("name", "")[:200],
        direction=direction(texts.get("direction", ""), row_figures.factors),
        factors=row_figures.factors,
        other={name[:200]: text[:500] for name, text in row.items() if name not in known and text} | labels,
        **row_figures.rates,  # type: ignore[arg-type]
        latency=row_figures.latency,
        notes=_notes(row_figures),
    )


def _notes(row_figures: Figures) -> tuple[str, ...]:
    """A column may have another unit than its field."""
    block, rates = row_figures.factors.get("block_size"), row_figures.rates
    moved, iops = rates.get("bytes_per_s"), rates.get("iops")
    if not isinstance(block, int) or not moved or not iops:
        return ()
    ratio = moved / (iops * block)
    if max(ratio, 1 / ratio) < _OTHER_UNIT:
        return ()
    return (f"The bandwidth is {ratio:,.4g} times IOPS × block size. Check the units of these columns.",)


def factor(name: str, text: str) -> Value:
    """The value of a factor, as in a plan. Raises ImportRefused."""
    try:
        return FACTORS[name].values.parse(text)
    except ValueRefused as error:
        raise ImportRefused(f"{FACTORS[name].label}: {str(error)[:300]}.") from error


def _stated_direction(text: str, pattern: Pattern | None) -> Direction:
    """Raises ImportRefused, also for a direction that contradicts the pattern."""
    try:
        stated = Direction(text.lower())
    except ValueError as error:
        raise ImportRefused(f"The direction `{text[:40]}` is not read, write, trim or mixed.") from error
    if pattern is None:
        return stated
    has = {Direction.READ: pattern.reads, Direction.WRITE: pattern.stores, Direction.TRIM: pattern.trims}
    if not has[stated]:
        raise ImportRefused(f"A row states the direction {stated} and the pattern {pattern}, which has no such I/Os.")
    return stated


def direction(text: str, factors: Mapping[str, Value]) -> Direction | None:
    """As stated, otherwise that of the pattern. None: reads and writes together (`mixed`, a mixed pattern)."""
    if text.lower() == "mixed":
        return None
    pattern = Pattern(str(factors["pattern"])) if "pattern" in factors else None
    if text:
        return _stated_direction(text, pattern)
    if pattern is None:
        raise ImportRefused("The CSV needs a column for the direction or the pattern.")
    if pattern.mixed or (pattern.trims and pattern.stores):
        return None
    return Direction.TRIM if pattern.trims else Direction.WRITE if pattern.writes else Direction.READ
