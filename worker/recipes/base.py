"""The interface of an engine's recipe, file names in targets, and the texts of sizes and stop rules."""

import re
from typing import Any, Protocol

import msgspec

from worker.contract.base import Failed
from worker.contract.items import Metric
from worker.contract.workload import Confidence, Settled, SteadyRounds, StopRule, Stream, TargetKind


class RecipeError(Failed, ValueError):
    """The stream cannot run."""

    def __init__(self, message: str) -> None:
        super().__init__("option_refused", message)


class Recipe(msgspec.Struct, frozen=True):
    """`job_text` goes to the standard input of `command`, which runs in the directory that holds `files`."""

    job_text: str
    command: tuple[str, ...]
    files: tuple[str, ...]  # relative file names in a directory target; () for other kinds


class EngineRecipe(Protocol):
    """A module or package of `recipes`, one for each engine."""

    @property
    def LABEL(self) -> str:  # noqa: N802 - a constant of a module
        """The engine's label on pages and in messages."""
        ...

    @property
    def METRICS(self) -> tuple[Metric, ...]:  # noqa: N802
        """Metrics of the engine besides I/Os, bytes and latencies. Names and labels are unique across engines."""
        ...

    @property
    def DEFAULT_METRIC(self) -> str:  # noqa: N802
        """The metric shown unless another is chosen: a name of `METRICS`, `iops` or `bytes_per_s`."""
        ...

    @property
    def INSTALLATION(self) -> str:  # noqa: N802
        """What to install on a host without the engine, as a sentence; "" if it is part of the worker."""
        ...

    def problems(self, workload: Any, kind: TargetKind) -> tuple[str, ...]:  # a recipe's own kind
        """All reasons why the workload cannot run on a target of this kind, as clauses; () if it can."""
        ...

    def feature_words(self, feature: str) -> str:
        """Describe one of `Workload.features`."""
        ...

    def render(self, stream: Stream) -> Recipe:
        """The measured job."""
        ...


# File names in targets.


def scratch_names(stream: Stream) -> tuple[str, ...]:
    """The stream's files in a directory target. The size is part of the name: trials of one size share files. So is
    the name of the stream: streams of one trial do not share files. New files do not replace prefilled ones."""
    return tuple(f"{scratch_prefix(stream)}{number}" for number in range(stream.workload.files))


def scratch_prefix(stream: Stream) -> str:
    """The names of the stream's files without their numbers, which start at 0."""
    work = stream.workload
    name, new = f"{stream.name}." if stream.name else "", "new." if work.creates_files else ""
    return f"sweetspot.{name}{work.size_bytes}.{new}"


def temporary_folder(stream: Stream) -> str:
    """The folder of a stream in its directory, removed with everything in it after the trial."""
    return f"temporary.{stream.number}"


def target_names(stream: Stream) -> tuple[str, ...]:
    """The paths that the engine opens: a device's path, a file's base name, or the scratch files."""
    if stream.target.kind is TargetKind.BLOCK:
        return (stream.target.path,)
    if stream.target.kind is TargetKind.FILE:
        return (stream.target.path.rpartition("/")[2],)
    return scratch_names(stream)


# Sizes as people read them.

_UNITS = ((1024**3, "GiB"), (1024**2, "MiB"), (1024, "KiB"))


def size_words(size_bytes: int) -> str:
    """`192 KiB`: never rounded, in the largest binary unit that gives a whole number. Plans accept it as a level."""
    for unit_bytes, name in _UNITS:
        if size_bytes and size_bytes % unit_bytes == 0:
            return f"{size_bytes // unit_bytes} {name}"
    return f"{size_bytes} B"


# The text of a stop rule, as in plans: `confidence 2%`, `settled 60s`, `snia 60s`.

STOP_RULE_EXAMPLES = "`confidence 2%`, `settled 60s` or `snia 60s`"
_SECONDS = {"s": 1, "m": 60, "min": 60, "h": 3600}


def parse_stop_rule(text: str) -> StopRule:
    """Raises ValueError with a sentence that says what is valid."""
    match = re.fullmatch(
        r"([a-z]+)\s+([0-9]{1,9}(?:\.[0-9]{1,6})?)\s*(%|[a-z]+)", text.strip(), re.ASCII | re.IGNORECASE
    )
    if match is None:
        raise ValueError(f"`{text.strip()}` is not understood; write it like {STOP_RULE_EXAMPLES}")
    name, number, unit = match[1].lower(), float(match[2]), match[3].lower()
    try:
        rule: StopRule = msgspec.convert({"rule": name, **_field(name, number, unit)}, StopRule)
    except (KeyError, msgspec.ValidationError) as error:
        raise ValueError(f"`{text.strip()}` is not a valid stop rule; write it like {STOP_RULE_EXAMPLES}") from error
    return rule


def _field(name: str, number: float, unit: str) -> dict[str, float]:
    if name == "confidence":
        return {"percent": number} if unit == "%" else {}
    seconds = number * _SECONDS[unit]
    return {{"snia": "round_s", "settled": "hold_s"}[name]: int(seconds) if seconds == int(seconds) else seconds}


def write_stop_rule(rule: StopRule) -> str:
    match rule:
        case Confidence():
            return f"confidence {rule.percent:g}%"
        case SteadyRounds():
            return f"snia {rule.round_s}s"
        case Settled():
            return f"settled {rule.hold_s}s"
