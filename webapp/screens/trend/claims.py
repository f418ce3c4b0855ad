"""What the trends say together, in the words of a heading: the overview and the list of trends use the same."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from urllib.parse import urlencode

from django.urls import reverse

from webapp.analysis.words import PERCENT, shown
from webapp.core import formatting
from webapp.hosts.models import Target
from webapp.plans.models import Plan
from webapp.trends.summaries import Row, State, Step
from worker.contract.workload import TargetKind

NUMBERS = ("no", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")
VERBS = {
    State.FROZE: "froze", State.SLOWER: "got slower", State.WORSE: "became worse in the newest run",
    State.FASTER: "got faster",
}  # fmt: skip
SIGNS = {
    State.FROZE: "‖", State.SLOWER: "▼", State.WORSE: "▼", State.FASTER: "▲", State.STEADY: "", State.SHORT: "",
    State.UNCERTAIN: "",
}  # fmt: skip
LABELS = {
    State.FROZE: "Froze", State.SLOWER: "Slower", State.WORSE: "Worse", State.FASTER: "Faster", State.STEADY: "Steady",
    State.SHORT: "New", State.UNCERTAIN: "No certain change",
}  # fmt: skip


def number(count: int) -> str:
    """In words up to nine."""
    return NUMBERS[count] if count < len(NUMBERS) else formatting.count(count)


def noun(rows: Sequence[Row], count: int) -> str:
    """Drives, or targets if one of the rows is a directory."""
    word = "target" if any(row.target.kind == TargetKind.DIRECTORY for row in rows) else "drive"
    return word if count == 1 else f"{word}s"


def counts(rows: Sequence[Row]) -> Mapping[State, int]:
    state_counts = Counter(row.summary.state for row in rows)
    return {state: state_counts[state] for state in State}


def changes(rows: Sequence[Row], states: Sequence[State]) -> list[str]:
    """“one drive got slower”, “two froze”. The first names what is counted."""
    state_counts = counts(rows)
    judged = [row for row in rows if row.summary.state is not State.SHORT]
    phrases: list[str] = []
    for state in states:
        if count := state_counts[state]:
            what = "" if phrases else f" {noun(judged, count)}"
            phrases.append(f"{number(count)}{what} {VERBS[state]}")
    return phrases


def unchanged(rows: Sequence[Row], steady: str) -> str:
    """Of drives that did not change: “Two drives are as fast as before, one has no certain change”."""
    unsure = counts(rows)[State.UNCERTAIN]
    sure = len(rows) - unsure
    if not unsure:
        return f"The {noun(rows, 1)} is {steady}" if sure == 1 else f"All {sure} {noun(rows, 2)} are {steady}"
    if not sure:
        return f"No certain change in {number(unsure)} {noun(rows, unsure)}"
    first = f"{number(sure)} {noun(rows, sure)} {'is' if sure == 1 else 'are'} {steady}"
    return sentence([first, f"{number(unsure)} {'has' if unsure == 1 else 'have'} no certain change"])


def sentence(phrases: Sequence[str]) -> str:
    """Joined, with a capital letter."""
    text = ", ".join(phrases)
    return text[:1].upper() + text[1:]


@dataclass(frozen=True)
class Change:
    """Of a step, in words: “18 %”, “firmware”."""

    size: str
    cause: str


def change_of(step: Step) -> Change:
    """Of a gradual change, how long it took stands for the cause."""
    cause = f"gradually over {step.over} runs" if step.over else cause_of(step.changed)
    return Change(shown(step.ratio, PERCENT).lstrip("+−"), cause)


def cause_of(labels: Sequence[str]) -> str:
    """“firmware and 2 more changed”: what may be the cause of a step; "" if nothing changed."""
    causes = [label.rpartition(".")[2].replace("_", " ") for label in labels]
    more = f" and {len(causes) - 1} more" if len(causes) > 1 else ""
    return f"{causes[0]}{more} changed" if causes else ""


def trend_address(plan: Plan, target: Target) -> str:
    return f"{reverse('trends')}?{urlencode({'plan': plan.slug, 'target': str(target)})}"
