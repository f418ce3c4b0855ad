"""Why a valid result may not be the speed of the drive, in words, with the numbers; and which runs are incomplete."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from math import sqrt

from django.db.models import Count, Q

from webapp.core.formatting import iops, significant
from webapp.results.metrics import LOAD_ASKED, LOAD_BESIDE, LOAD_DELAYED, LOAD_REACHED
from webapp.results.models import Result
from webapp.results.reading.rows import ResultRow
from webapp.runs.models import Run, RunState, TrialState
from worker.contract.inventory import MEMORY_FILE_SYSTEMS
from worker.contract.steadiness import LABELS, NOT_STEADY, Steadiness, Verdict

MIN_FROM_DRIVE = 0.9  # share of the bytes
MAX_SHORTFALL = 2.0  # percent of the asked IOPS
MAX_DELAYED = 5.0  # percent of the I/Os
NOT_KEPT_UP = "could not keep up"
BESIDE_NOT_KEPT_UP = f"the stream beside it {NOT_KEPT_UP}"
COPY_METHOD = "copy_method"  # a factor of the file copy engine
# Labels of an imported test with the words of its doubt and their short form.
BESIDE_JOBS, JOB_ERROR, CONTRADICTION = "ran beside", "error of the job", "contradiction"
_OF_LABELS = {
    BESIDE_JOBS: ("other jobs of fio ran at the same time", "beside other jobs"),
    JOB_ERROR: ("a job of fio ended with an error", "ended with an error"),
    CONTRADICTION: ("the values in the file contradict each other", "contradicts itself"),
}
PURGED = "purged"  # worker.drives.records.DriveState


@dataclass(frozen=True)
class Doubt:
    words: str  # a sentence without a full stop
    short: str  # the same for lists: `drifting`, `reads not from the drive`


def doubts(result: ResultRow) -> list[Doubt]:
    """None if there is no doubt."""
    doubts_of_result = []
    if result.steadiness in NOT_STEADY:
        doubts_of_result.append(Doubt(f"not steady, {steadiness_words(result)}", LABELS[Verdict(result.steadiness)]))
    if result.settings_changed:
        words = "a setting was changed by something else during the measurement"
        doubts_of_result.append(Doubt(words, "setting changed meanwhile"))
    for label, (words, short) in _OF_LABELS.items() if result.imported else ():
        if text := result.facts.get(label):
            doubts_of_result.append(Doubt(f"{words} ({text})", short))
    if LOAD_ASKED in result.metrics or LOAD_DELAYED in result.metrics:
        doubts_of_result += _load(result)
    if doubt := _no_drive(result) or _reflinked(result) or _missed(result) or _purged(result):
        doubts_of_result.append(doubt)
    return doubts_of_result


def _load(result: ResultRow) -> Iterator[Doubt]:
    """Of an open loop."""
    if not kept_up(result):
        reached, asked = result.metrics[LOAD_REACHED], result.metrics[LOAD_ASKED]
        words = f"{NOT_KEPT_UP}: it reached {significant(reached)} % of {iops(asked)}"
        yield Doubt(words, NOT_KEPT_UP)
    if (beside := result.metrics.get(LOAD_BESIDE)) is not None:
        yield Doubt(f"{BESIDE_NOT_KEPT_UP}: it reached {significant(beside)} % of its load", BESIDE_NOT_KEPT_UP)
    if waited(result):
        share = significant(min(result.metrics[LOAD_DELAYED], 100))
        words = f"{share} % of the I/Os waited for an earlier one of their job, so latencies are too low"
        yield Doubt(words, "latencies too low")


def waited(result: ResultRow) -> bool:
    """Whether so many I/Os of an open loop waited for an earlier one of their job that its latencies are too low."""
    return result.metrics.get(LOAD_DELAYED, 0.0) > MAX_DELAYED


def kept_up(result: ResultRow | Result) -> bool:
    """Whether an open loop reached its asked IOPS. A smaller shortfall than three standard deviations of Poisson
    arrivals is chance. True of all other results."""
    asked, reached = result.metrics.get(LOAD_ASKED), result.metrics.get(LOAD_REACHED)
    if not asked or reached is None:
        return True
    chance = 300 / sqrt(asked * (result.runtime_ms or 0) / 1000 or 1)
    return bool(100 - reached <= max(MAX_SHORTFALL, chance))


def _no_drive(result: ResultRow) -> Doubt | None:
    if result.tool == "hdparm" and result.test == "cached reads" and not result.point.get("direct"):
        return Doubt("hdparm -T measures memory and not the drive", "memory, not a drive")
    file_system, device = result.facts.get("file_system", ""), result.facts.get("device.kind", "")
    what = file_system if file_system in MEMORY_FILE_SYSTEMS else "zram" if device == "zram" else ""
    return Doubt(f"measured on {what}, which is memory and not a drive", "memory, not a drive") if what else None


def _reflinked(result: ResultRow) -> Doubt | None:
    """Copies in the kernel, by their extents: XFS and btrfs may share blocks instead of moving data."""
    percent = result.metrics.get("shared_percent", 0.0)
    if percent <= 100 * (1 - MIN_FROM_DRIVE):
        return None
    words = f"a reflink and not a copy: {significant(percent)} % of the copy are blocks of its source, not moved data"
    return Doubt(words, "reflink, not a copy")


def _missed(result: ResultRow) -> Doubt | None:
    """A part of the bytes never reached the drive. None if it is small or unknown, and for writes but copies."""
    share = result.device_share
    if share is None or share >= MIN_FROM_DRIVE or (result.direction != "read" and COPY_METHOD not in result.point):
        return None
    percent = f"{significant(100 * (1 - share))} %"
    words = f"{percent} of the {result.direction}s never reached the drive{_instead(result)}"
    return Doubt(words, f"{result.direction}s not {'from' if result.direction == 'read' else 'to'} the drive")


def _purged(result: ResultRow) -> Doubt | None:
    if result.direction != "read" or result.drive_state != PURGED or COPY_METHOD in result.point:
        return None
    words = "the drive was purged and not written since, so it can answer reads without reading its flash"
    return Doubt(words, "reads of a purged drive")


def _instead(result: ResultRow) -> str:
    if COPY_METHOD in result.point:
        return ": the copy shares blocks with its source, or the page cache holds them"
    return f", but came from {'holes or unwritten parts of files' if result.point.get('direct') else 'the page cache'}"


def steadiness_words(result: ResultRow) -> str:
    """`drifting: −14 % from start to end`; – without samples."""
    steadiness = Steadiness.stored(result.steadiness, result.steadiness_numbers)
    return _words(steadiness) if steadiness else "–"


def _words(steadiness: Steadiness) -> str:
    match steadiness.verdict:
        case Verdict.STALLED:
            return f"stalled: {steadiness.stalled_s} s near zero, {steadiness.stall_s} s in a row"
        case Verdict.STEPPED:
            return f"stepped: {_signed(steadiness.step)} at {steadiness.step_at_s} s"
        case Verdict.DRIFTING:
            return f"drifting: {_signed(steadiness.drift)} from start to end"
        case Verdict.BURSTY:
            return f"bursty: ±{significant(steadiness.variation * 100)} % between seconds"
        case Verdict.TOO_SHORT:
            return "too short to judge"
    return f"steady: ±{significant(steadiness.variation * 100)} % between seconds"


def _signed(share: float) -> str:
    text = significant(share * 100)
    return f"{'' if text.startswith('−') else '+'}{text} %"


# Runs that ended before all of their trials were done: their values stand beside those of complete runs.

LISTED = 5


def unfinished_sentences(rows: Iterable[ResultRow]) -> Iterator[str]:
    """`Run 3 was cancelled after 12 of 40 trials.` for each run of these rows that was cancelled or failed; then the
    number of further ones. One query, or none without such a run."""
    states = {row.run: row.run_state for row in rows if row.run_state in (RunState.CANCELLED, RunState.FAILED)}
    listed = sorted(states)[:LISTED]
    done = Count("trials", filter=Q(trials__state=TrialState.DONE))
    runs = Run.objects.filter(number__in=listed).order_by("number").annotate(done=done) if listed else ()
    for run in runs:
        verb = "was cancelled" if run.state == RunState.CANCELLED else "failed"
        yield f"Run {run.number} {verb} after {run.done} of {run.trial_count} trials. Its results are included."
    if len(states) > LISTED:
        yield f"{len(states) - LISTED} more runs were cancelled or failed. Their results are included."
