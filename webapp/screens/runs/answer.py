"""The head of the page of an ended run: its answer, what one can trust, and what needs a look."""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass, replace

from django.utils import timezone

from webapp.analysis.answer import FindingKind
from webapp.analysis.words import PERCENT, shown
from webapp.hosts.models import Target
from webapp.plans.document import Order
from webapp.results.metrics import METRICS
from webapp.runs.models import Run, RunState, Trial, TrialState
from webapp.screens.findings import FindingList, as_heading
from webapp.screens.outcome import Outcome
from webapp.screens.runs.live import SettingRow
from webapp.screens.trend.claims import change_of, trend_address
from webapp.trends.summaries import State, summaries

ENOUGH_REPEATS = 3  # for a claim
PREVIOUS_RUN = (FindingKind.CHANGED, FindingKind.UNCHANGED)


def heading(run: Run, outcome: Outcome) -> str:
    """The headline without its interval, which stands below."""
    return as_heading(outcome.claim) if outcome.claim else f"Run {run.number} has no valid results"


def short_names(text: str, targets: Sequence[Target]) -> str:
    """Targets of a run on one host without its name, which stands above the heading."""
    hosts = {target.host.slug for target in targets}
    if len(hosts) > 1:
        return text
    for target in targets:
        text = text.replace(str(target), target.slug)
    return text


def with_short_names(findings: FindingList, targets: Sequence[Target]) -> FindingList:
    parts = (findings.first, findings.more, findings.dismissed)
    shown = (tuple(replace(each, text=short_names(each.text, targets)) for each in part) for part in parts)
    return FindingList(*shown)


@dataclass(frozen=True)
class Trust:
    """A reason to trust the numbers, or not to."""

    words: str
    is_good: bool


def trust(run: Run, trials: Sequence[Trial], settings: Sequence[SettingRow], outcome: Outcome) -> Iterator[Trust]:
    """Only what is known; a run without results has none. What differs from the previous run counts if the heading is
    about both. That the finding in the heading may be chance or drift is a reason not to trust it."""
    stated = outcome.stated
    if not (repeats := _repeats(run, trials)):
        return
    least, most = min(repeats), max(repeats)
    is_random = run.version.document.get("order", Order.RANDOMISED) == Order.RANDOMISED
    words = f"{most} repeats" if least == most else f"{least} to {most} repeats"
    if most == 1:
        yield Trust("measured once: no claims", is_good=False)
    elif least < ENOUGH_REPEATS:
        yield Trust(f"{words}: too few for {'claims' if most < ENOUGH_REPEATS else 'some claims'}", is_good=False)
    else:
        yield Trust(f"{words}, {'random order' if is_random else 'in listed order'}", is_random)
    if outcome.lines:
        of_runs = stated.caution if stated and stated.kind in PREVIOUS_RUN else ""
        cautions = any([*(line.caution for line in outcome.lines), of_runs])
        yield Trust("something else differs, too" if cautions else "nothing else differs", not cautions)
    if stated and stated.doubt:
        yield Trust(stated.doubt, is_good=False)
    if settings:
        troubled = any(row.trouble for row in settings)
        yield Trust("settings not restored" if troubled else "settings restored", not troubled)


def _repeats(run: Run, trials: Sequence[Trial]) -> Collection[int]:
    """The number of valid repeats at each measured point."""
    valid = [
        trial for trial in trials if trial.state == TrialState.DONE and not (trial.invalid_reason or run.invalid_reason)
    ]
    return Counter((trial.target_id, trial.part, trial.point_key) for trial in valid).values()


@dataclass(frozen=True)
class Caution:
    text: str
    code: str = ""
    trend: str = ""  # address


def warnings(run: Run, trials: Sequence[Trial], settings: Sequence[SettingRow], outcome: Outcome) -> Iterator[Caution]:
    """What stands above everything else."""
    if run.invalid_reason:
        yield Caution(f"Invalid, left out of comparisons: {run.invalid_reason}")
    if run.reason:
        yield Caution(run.reason, run.reason_code if run.state != RunState.CANCELLED else "")
    if outcome.failures:
        yield Caution(outcome.failures)
    for row in settings:
        if row.trouble:
            yield Caution(f"{row.name} of {row.device or row.host} on {row.host}: {row.put_back}.")
    yield from _steps(run)
    for caution in dict.fromkeys(line.caution for line in outcome.lines if line.caution):
        yield Caution(caution)
    invalid = sum(bool(trial.invalid_reason) for trial in trials)
    if invalid and not run.invalid_reason:
        words = "trials are" if invalid > 1 else "trial is"
        yield Caution(f"{invalid} {words} marked as invalid and left out of comparisons.")


def _steps(run: Run) -> Iterator[Caution]:
    """A trend that got slower, as the overview says, on its newest run: against the run before, it may be unchanged."""
    for row in summaries(newest=run):
        step = row.summary.step
        if row.summary.state is State.SLOWER and step:
            values = f"{METRICS[row.summary.metric].label} {shown(step.ratio, PERCENT)}"
            since = ": ".join(filter(None, (f"since {timezone.localtime(step.at):%Y-%m-%d}", change_of(step).cause)))
            yield Caution(f"{row.target} got slower: {values} {since}.", trend=trend_address(row.plan, row.target))
