"""What the published tables show, as their authors concluded it, is found in the product's default views."""

import pytest
from msgspec.structs import astuple

from webapp.analysis.answer import Comparison, Finding, FindingKind
from webapp.analysis.comparing import comparison_of
from webapp.imports.references.reading import load_references
from webapp.results.models import Import
from webapp.screens.explore.resolve import resolved

K = FindingKind
# Folder of the reference, table ("" for the default view), kind, names in the sentence, value, level.
CONCLUSIONS = [
    # Jouke Brouwer and Arjan Tijms: however many drives, all graphs saturate at 60k to 65k IOPS, and at 1.8 GB/s
    ("mtron-raid0-12", "", K.SATURATION, ("randread", "Jobs 10", "Jobs 40", "62.6k"), 62_600, "16 KiB"),
    ("mtron-raid0-12", "", K.SATURATION, ("randread", "1.82 GB/s"), 1.82e9, "64 KiB"),
    ("mtron-raid0-12", "", K.NOTHING_MORE, ("10 jobs",), None, None),
    ("mtron-raid0-12", "", K.OUTLIER, ("randread", "Jobs 1"), 11_300, "512 B"),
    ("mtron-raid5-4", "", K.OUTLIER, ("randread", "Jobs 1"), 24, "512 B"),
    ("mtron-raid5-4", "", K.OUTLIER, ("randread", "Jobs 10"), 28_100, "512 B"),
    # one blade more: about 150 W
    ("supermicro-2026tt-power", "", K.LINEAR, ("blade",), 152, None),
    # read-ahead of 8192 sectors: reads almost three times as fast, writes unchanged
    ("dell-pe2970-perc5i", "", K.TRADE_OFF, ("read ×2.88", "write −5.0 %"), None, None),
    # the fuller the card, the slower
    ("fusionio-duo-320gb", "", K.TREND, ("×0.09",), 104e6, None),
    ("tachion-400gb", "", K.TREND, ("×0.42",), 437e6, None),
    ("intel-320-random-write", "", K.TREND, ("×0.15",), 960, None),
    # one Intel 320 stops at 183 MB/s from 16 threads on, two of them do not
    ("intel-320-random-read", "", K.SATURATION, ("183 MB/s", "16 jobs"), 183e6, "16"),
    # the working set leaves the cache: reads collapse, writes do not
    ("oes-working-sets", "", K.EFFECT, ("×0.07", "×0.10", "write"), None, "40"),
    # noop: faster reads, slower writes
    ("lsi9266-vertex4-bonnie", "WriteBack vs. WriteThrough mit noop", K.TRADE_OFF, ("+31 %", "−8.8 %"), None, None),
    ("lsi9266-vertex4-bonnie", "cfq mit ionice versus deadline und noop", K.EFFECT, ("deadline", "−36 %"), None, None),
    # ten per cent of writes cost far more than ten per cent
    ("x25-m-lvm-stripe", "", K.MIX_COST, ("randrw", "42 %"), None, None),
]


@pytest.mark.django_db
def test_the_conclusions_of_the_published_tables_are_found() -> None:
    load_references()
    numbers = dict(Import.objects.values_list("slug", "number"))
    made = {key: _comparison(numbers[key[0]], key[1]) for key in dict.fromkeys(one[:2] for one in CONCLUSIONS)}
    missed = [
        one for one in CONCLUSIONS if not any(_is(made[one[:2]], said, *one[2:]) for said in made[one[:2]].findings)
    ]
    assert not missed, {key: [astuple(one)[:2] for one in comparison.findings] for key, comparison in made.items()}


def _comparison(number: int, table: str) -> Comparison:
    pairs = [("import", str(number)), *([("fact.table", table)] if table else [])]
    selected = resolved(pairs).selected
    assert selected
    return comparison_of(selected)


def _is(
    comparison: Comparison,
    said: Finding,
    kind: FindingKind,
    words: tuple[str, ...],
    value: float | None,
    level: str | None,
) -> bool:
    at = comparison.levels[said.level].text if said.level is not None else ""
    return (
        said.kind is kind
        and all(word in said.sentence for word in words)
        and (value is None or said.value == pytest.approx(value, rel=0.03))
        and (level is None or at == level)
    )
