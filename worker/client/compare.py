"""`compare`: whether B is worse than A, by the server's statistics, and the limits of that claim."""

import argparse
import math
import re
from collections.abc import Sequence
from pathlib import Path

from . import output
from .answers import Row, Verdict, read
from .errors import ExitCode, UsageError
from .results import level, varying_factors
from .runs import print_findings
from .server import Server

DEFAULT_PERCENT = 5.0
EXIT_CODES = {"fails": ExitCode.FAILED, "unclear": ExitCode.CANNOT_TELL, "passes": ExitCode.OK}  # worst first
WORDS = {"passes": "not worse", "fails": "worse", "unclear": "cannot tell"}
WORDS_OF_VALUES = {"passes": "passes", "fails": "fails", "unclear": "cannot tell"}  # without a claim of a difference
MAX_DIGITS = 6
HEAD = ("verdict", "metric", "target", "direction")
_PERCENT = re.compile(r"\s*(\d+(?:\.\d+)?)\s*%?\s*", re.ASCII)


def percent(text: str) -> float:
    match = _PERCENT.fullmatch(text)
    if match is None:
        raise argparse.ArgumentTypeError(f"`{text}` is not a percentage. Write for example 5%")
    return float(match[1])


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "compare", help="say whether B is worse than A",
        epilog="A and B are numbers of runs, or filters such as 'run=17&target=storage1/nvme0n1'. Exit code with "
        "--fail-if-worse: 0 not worse, 1 worse (or drift, if one always ran before the other), 5 cannot tell.",
    )  # fmt: skip
    parser.add_argument("a", metavar="A", help="the baseline")
    parser.add_argument("b", metavar="B", help="what is judged")
    parser.add_argument(
        "--fail-if-worse", type=percent, metavar="PERCENT", dest="tolerance",
        help="exit with 1 if B is worse by more than this, also if that may be drift, and with 5 if the repeats cannot "
        "tell",
    )  # fmt: skip
    parser.add_argument(
        "--metric", action="append", default=[], help="iops (default), bytes_per_s, latency_p99, power, …"
    )
    parser.add_argument(
        "--single-values", action="store_true",
        help="judge test points with fewer than three repeats by the tolerance alone, without an interval",
    )  # fmt: skip
    parser.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="FACTOR",
        help="a factor that may differ, for example ioengine; unstated: all that only one side states",
    )
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(command=run_compare)


def run_compare(options: argparse.Namespace, server: Server) -> ExitCode:
    tolerance = DEFAULT_PERCENT if options.tolerance is None else options.tolerance
    metrics = [("metric", name) for name in options.metric or ["iops"]]
    sides = [("baseline", side(options.a)), ("candidate", side(options.b))]
    chosen = [("single_values", "true")] if options.single_values else []
    chosen += [("ignore", name) for name in options.ignore]
    answer = server.get("verdict", [*sides, *metrics, *chosen, ("tolerance", tolerance)])
    verdict = read(Verdict, answer)
    if options.json:
        output.print_json(answer)
    else:
        _print(verdict, options, tolerance)
        if options.b.isdecimal():
            print_findings(server, int(options.b))
    return ExitCode.OK if options.tolerance is None else EXIT_CODES[verdict.outcome]


def side(text: str) -> str:
    """A filter; a number is a run."""
    if text.isdecimal():
        return f"run={text}"
    if "=" in text:
        return text
    hint = f"First: sweetspot import {text}, then import=NUMBER." if Path(text).exists() else ""
    raise UsageError(
        f"`{text}` is neither the number of a run nor a filter such as run=17&host=storage1. {hint}".strip()
    )


def _print(verdict: Verdict, options: argparse.Namespace, tolerance: float) -> None:
    rows = sorted((read(Row, row) for row in verdict.rows), key=lambda row: list(EXIT_CODES).index(row.outcome))
    varying = varying_factors([row.point for row in rows if row.point is not None])
    head = (*HEAD, *varying, "A", "B", "change", "95 % interval", "why")
    by_values = any(row.single_values for row in rows)
    print(output.table(head, [_cells(row, varying) for row in rows]))
    if verdict.same:
        output.remark(f"Same for all: {', '.join(verdict.same)}.")
    if verdict.new_cells:
        output.remark(f"B has {verdict.new_cells} test points that A does not have. They are not judged.")
    if verdict.shared_results:
        output.remark(f"{verdict.shared_results} results are in A and B, and left out of the side with more results.")
    if verdict.ignored:
        output.remark(f"Ignored factors: {', '.join(verdict.ignored)}.")
    words = WORDS_OF_VALUES if by_values else WORDS
    counts = ", ".join(f"{verdict.counts[name]} {words[name]}" for name in EXIT_CODES)
    if by_values:
        sentence = _sentence_of_values(verdict.outcome, options, tolerance)
    else:
        failed = [row for row in rows if row.outcome == "fails"]
        sentence = _sentence(verdict.outcome, options, tolerance, may_be_drift=all(row.order for row in failed))
    print()
    for row in rows:
        if row.sentence:
            print(output.printable(row.sentence))
    print(f"{sentence} {_advice(rows, options)}Rows: {counts}.")
    for limit in verdict.limits:
        print(f"Limit: {limit}")


def _sentence_of_values(outcome: str, options: argparse.Namespace, tolerance: float) -> str:
    verdict = {"passes": "passes", "fails": "fails", "unclear": "cannot be judged completely"}[outcome]
    return (
        f"With a tolerance of {tolerance:g} % against A ({options.a}), B ({options.b}) {verdict}. Rows without an "
        "interval compare single values and do not show that B differs."
    )


def _sentence(outcome: str, options: argparse.Namespace, tolerance: float, *, may_be_drift: bool) -> str:
    drift = ", or the host drifted: one of them always ran before the other" if may_be_drift else ""
    return {
        "passes": f"B ({options.b}) is not worse than A ({options.a}) by more than {tolerance:g} %.",
        "fails": f"B ({options.b}) is worse than A ({options.a}) by more than {tolerance:g} %{drift}.",
        "unclear": f"The repeats cannot tell whether B ({options.b}) is worse than A ({options.a}) by more than "
        f"{tolerance:g} %.",
    }[outcome]


def _advice(rows: Sequence[Row], options: argparse.Namespace) -> str:
    unclear = [row for row in rows if row.outcome == "unclear"]
    if not unclear:
        return ""
    if any(row.ratio_low is not None for row in unclear):
        return "More repeats make the intervals narrower. "
    if options.single_values:
        return ""
    return "A and B need at least three repeats of the same test points, or judge their values with --single-values. "


def _cells(row: Row, varying: Sequence[str]) -> tuple[str, ...]:
    point = row.point
    levels = ["" if point is None else level(point, name) for name in varying]
    mean = f"mean of {row.cells}" if row.cells else "mean"
    direction = " ".join(filter(None, (row.chart or row.direction, mean if point is None else "")))
    return (
        _word(row), row.metric, row.target or "–", direction, *levels, output.value(row.unit, row.baseline),
        output.value(row.unit, row.value), _change(row.ratio, row.limit), _interval(row), row.why,
    )  # fmt: skip


def _word(row: Row) -> str:
    if row.single_values:
        return WORDS_OF_VALUES[row.outcome]
    return "worse or drift" if row.outcome == "fails" and row.order else WORDS[row.outcome]


def _change(ratio: float | None, limit: float = 0.0) -> str:
    """In percent, with as many digits as tell it from the limit: -5.04 % is worse than -5 %."""
    if ratio is None:
        return "–"
    change, most = 100 * (ratio - 1), 100 * (limit - 1)
    digits = next((n for n in range(1, MAX_DIGITS) if round(change, n) != round(most, n)), 1)
    return f"{change:+.{digits}f} %"


def _interval(row: Row) -> str:
    """Rounded outwards, as on the server's pages."""
    if row.ratio_low is None or row.ratio_high is None:
        return "–"
    ends = ((math.floor, row.ratio_low), (math.ceil, row.ratio_high))
    low, high = (whole(round(1000 * (ratio - 1), 6)) / 10 for whole, ratio in ends)
    return f"{low:+.1f} % to {high:+.1f} %"
