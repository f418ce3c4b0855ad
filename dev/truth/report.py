"""The tables of `make truth-statistics`, as Markdown."""

from collections.abc import Iterator, Sequence
from itertools import groupby

from dev.truth.measure import FalseClaims, Figure
from webapp.plans.document import Order

LISTED = 40  # scenarios outside the limits
_ORDERS = {
    ("scheduler", Order.RANDOMISED): "randomised, costly factor",
    ("ioengine", Order.RANDOMISED): "randomised, cheap factor",
    ("scheduler", Order.LISTED): "listed",
}


def report(claims: Sequence[FalseClaims], found: Sequence[Figure], *, pages: int, seed: int) -> str:
    lines = [
        f"Nothing differs; {pages:,} pages a scenario, seed {seed}. A row covers 2 and 3 levels, 2 to 5 repeats, and 1,"
        " 4 and 14 points. A listed order may claim only with a warning of drift.",
        "",
        "| noise | order | pages with a false claim | worst scenario | false headlines | worst scenario |",
        "| --- | --- | ---: | ---: | ---: | ---: |",
        *_rows(claims),
        "",
        "| figure | rate | limit |",
        "| --- | ---: | ---: |",
        *(f"| {one.name} | {_percent(one.rate)} | {_limit(one)} |" for one in found),
        "",
        f"Scenarios outside the limits: {sum(not one.ok for one in claims)} of {len(claims)}."
        f" Pages in listed order without a warning: {sum(one.unwarned for one in claims)}.",
    ]
    lines += [f"- {one.scenario}: page {_percent(one.page_rate)}, headline {_percent(one.headline_rate)}"
              for one in [each for each in claims if not each.ok][:LISTED]]  # fmt: skip
    return "\n".join(lines) + "\n"


def _rows(claims: Sequence[FalseClaims]) -> Iterator[str]:
    for (noise, factor, order), each in groupby(claims, key=lambda one: _row_key(one)):
        row = list(each)
        total = sum(one.pages for one in row)
        pages, headlines = (
            sum(one.false_pages for one in row) / total,
            sum(one.false_headlines for one in row) / total,
        )
        worst = max(one.page_rate for one in row), max(one.headline_rate for one in row)
        yield (
            f"| {noise} | {_ORDERS[factor, order]} | {_percent(pages)} | {_percent(worst[0])} | {_percent(headlines)}"
            f" | {_percent(worst[1])} |"
        )


def _row_key(one: FalseClaims) -> tuple[str, str, Order]:
    return one.scenario.noise, one.scenario.factor, one.scenario.order


def _percent(rate: float) -> str:
    return f"{100 * rate:.1f} %"


def _limit(one: Figure) -> str:
    return f"{_percent(one.low)} to {_percent(one.high)}"
