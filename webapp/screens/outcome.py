"""The result of a finished run in a few lines: the answers to its questions, or the reason why it has none."""

from dataclasses import dataclass

from django.urls import reverse

from webapp.analysis.run_answer import FactorAnswer, run_answer
from webapp.runs.models import Run


@dataclass(frozen=True)
class Line:
    """About one factor, with the address of its comparison."""

    text: str
    caution: str
    url: str


@dataclass(frozen=True)
class Outcome:
    """`says` and `caution` are sentences or ""; `url` is the address of the first comparison."""

    says: str
    caution: str
    url: str
    lines: tuple[Line, ...]
    rest: tuple[Line, ...]  # those that no finding states
    failures: str  # how many trials failed, and the first reason


def outcome(run: Run, *, marks: int) -> Outcome:
    """`marks`: how often trials of the run were marked as invalid (`analysis.run_answer.run_answer`)."""
    answer = run_answer(run, marks=marks)
    lines = tuple(map(_line, answer.factors))
    sentences = [finding.sentence for finding in answer.findings]
    return Outcome(
        says=answer.headline or run.reason,
        caution=" ".join(filter(None, (answer.caution, answer.failures))),
        url=lines[0].url if lines else "",
        lines=lines,
        rest=tuple(line for line in lines if not any(sentence in line.text for sentence in sentences)),
        failures=answer.failures,
    )


def _line(factor: FactorAnswer) -> Line:
    return Line(factor.text, factor.caution, f"{reverse('explore')}?{factor.query}")
