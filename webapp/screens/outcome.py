"""The result of a finished run in a few lines: the answers to its questions, or the reason why it has none."""

from collections.abc import Sequence
from dataclasses import dataclass

from django.urls import reverse

from webapp.analysis.evidence import RunFinding
from webapp.analysis.reviews import answers_of, stated_in
from webapp.analysis.run_answer import FactorAnswer, RunAnswer
from webapp.runs.models import Run


@dataclass(frozen=True)
class Line:
    """About one factor, with the address of its comparison."""

    text: str
    caution: str
    url: str


@dataclass(frozen=True)
class Outcome:
    """`says` and `caution` are sentences or "", `claim` is `says` without intervals and doubts; `url` is the address of
    the first comparison."""

    says: str
    claim: str
    stated: RunFinding | None  # whose sentence `says` is
    caution: str
    url: str
    lines: tuple[Line, ...]
    rest: tuple[Line, ...]  # those that no finding states
    failures: str  # how many trials failed, and the first reason


def outcome_of(run: Run) -> Outcome:
    return outcomes([run])[0]


def outcomes(runs: Sequence[Run]) -> list[Outcome]:
    """In the order of the runs."""
    return [_outcome(run, answer) for run, answer in zip(runs, answers_of(runs), strict=True)]


def _outcome(run: Run, answer: RunAnswer) -> Outcome:
    lines = tuple(map(_line, answer.factors))
    sentences = [finding.sentence for finding in answer.findings]
    return Outcome(
        says=answer.headline or run.reason,
        claim=answer.claim or run.reason,
        stated=stated_in(answer),
        caution=" ".join(filter(None, (answer.caution, answer.failures))),
        url=lines[0].url if lines else "",
        lines=lines,
        rest=tuple(line for line in lines if not any(sentence in line.text for sentence in sentences)),
        failures=answer.failures,
    )


def _line(factor: FactorAnswer) -> Line:
    return Line(factor.text, factor.caution, f"{reverse('explore')}?{factor.query}")
