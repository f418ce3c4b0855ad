"""The parts of the server's answers that the commands use. Names and units are those of openapi.json."""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from typing import Any, TypeVar

from .errors import ClientError

T = TypeVar("T")


def read(kind: type[T], answer: Mapping[str, Any]) -> T:
    """The fields of `kind`; others are ignored. Raises ClientError if one is missing."""
    names = [field.name for field in fields(kind)]  # type: ignore[arg-type]  # all kinds are dataclasses
    missing = [name for name in names if name not in answer]
    if missing:
        raise ClientError(
            f"The server's answer has no `{missing[0]}`. Install the `sweetspot` of this server's version."
        )
    return kind(**{name: answer[name] for name in names})


@dataclass(frozen=True)
class Run:
    number: int
    plan: str
    version: int
    state: str
    trial_count: int
    done_count: int
    failed_count: int
    note: str
    reason: str
    created_by: str | None
    created_at: str


@dataclass(frozen=True)
class Finding:
    kind: str
    sentence: str
    query: str  # of the page Explore that shows it
    review: Mapping[str, Any] | None

    @property
    def is_news(self) -> bool:
        """Neither dismissed nor uncertain."""
        return self.kind != "uncertain" and (self.review is None or self.review["verdict"] != "dismissed")


@dataclass(frozen=True)
class Progress:
    total: int
    done: int
    failed: int
    cancelled: int
    lost: int
    running: int | None
    phase: str
    seconds_left: float | None


@dataclass(frozen=True)
class Estimate:
    trials: int
    seconds: float
    seconds_low: float
    seconds_high: float
    unknown_trials: int
    bytes_written_max: int
    space_bytes: int


@dataclass(frozen=True)
class Preview:
    problems: list[str]
    obstacles: list[str]  # why it cannot be started on the targets
    note: str
    skipped: list[str]
    warnings: list[str]
    shared: list[str]
    arm: list[str]
    expected: list[dict[str, Any]]  # bytes, by target
    estimate: dict[str, Any]


@dataclass(frozen=True)
class Host:
    slug: str
    state: str
    last_seen_at: str | None
    worker_version: str


@dataclass(frozen=True)
class Target:
    name: str
    kind: str
    model: str
    size_bytes: int
    present: bool
    problem: str
    destroy: bool
    arming_serial: str


@dataclass(frozen=True)
class Verdict:
    outcome: str  # fails, unclear or passes
    counts: dict[str, int]
    new_cells: int
    shared_results: int
    same: list[str]  # conditions that all rows share, in words
    ignored: list[str]
    baseline_results: int
    candidate_results: int
    limits: list[str]
    rows: list[dict[str, Any]]


@dataclass(frozen=True)
class Row:
    metric: str
    unit: str
    target: str
    point: dict[str, Any] | None
    direction: str | None
    chart: str
    cells: int
    limit: float
    baseline: float | None
    value: float | None
    ratio: float | None
    ratio_low: float | None
    ratio_high: float | None
    outcome: str
    why: str
    single_values: bool
    sentence: str
    order: str
    repeats: int


@dataclass(frozen=True)
class Import:
    number: int
    title: str
    files_read: int
    files_refused: int
    results_made: int
    refused: dict[str, int]
