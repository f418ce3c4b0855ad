"""What holds for every reference, and that their cells match."""

import re
from collections import Counter

import pytest

from webapp.imports.references.tests.library import LIBRARY, entries_of
from webapp.plans.factors import FACTORS

COUNTS = {
    "dell-pe2970-perc5i": 3 * 4 + 2 * 4,
    "eva4400-fata": 6 + 9,
    "fusionio-320gb-mlc": 2,
    "fusionio-duo-320gb": 3 + 9,
    "intel-320-random-read": 3 * 6,
    "intel-320-random-write": 6 + 2,
    "lsi9266-vertex4-bonnie": 108,
    "lsi9266-vertex4-dd": 3 + 2 + 2 + 4,
    "lsi9266-vertex4-sdb": 3 + 6 + 5 + 4 + 3,
    "m4n-database": 2 + 2,
    "mtron-raid0-12": 2 * 14 * 3,
    "mtron-raid5-4": 2 * 14 * 3 - 4,
    "mysql-tachion": 2 * 3,
    "oes-nine-clients": 9,
    "oes-working-sets": 3 * 9,
    "supermicro-2026tt-power": 5 + 1,
    "supermicro-arc1260": 3 * 4,
    "tachion-400gb": 4 + 9,
    "x25-m-lvm-stripe": 2 * 14 * 3 + 6 * 7 * 3 + 2 + 1,
    "xeon-e5-2690-memory": 3 + 4 + 6,
}


def test_each_reference_has_itsentries_of() -> None:
    assert {slug: len(reference.entries) for slug, reference in LIBRARY.items()} == COUNTS


@pytest.mark.parametrize("slug", COUNTS)
def test_each_reference_says_where_and_when_it_was_published(slug: str) -> None:
    reference = LIBRARY[slug]
    assert "“" in reference.source  # the title of the publication
    assert re.search(r"\d{4}", reference.date)
    assert reference.note
    assert len({one.title for one in LIBRARY.values()}) == len(LIBRARY)


@pytest.mark.parametrize("slug", COUNTS)
def test_each_entry_has_a_figure_a_table_and_known_factors(slug: str) -> None:
    for entry in LIBRARY[slug].entries:
        measured = entry.measurement
        assert entry.path
        assert measured.tool
        assert measured.iops or measured.bytes_per_s or measured.metrics
        for name, value in measured.factors.items():
            values = FACTORS[name].values
            assert values.parse(values.write(value)) == value


@pytest.mark.parametrize("slug", COUNTS)
def test_a_test_is_counted_once(slug: str) -> None:
    seen = Counter(
        (
            one.path,
            one.measurement.name,
            one.measurement.direction,
            one.measurement.repeat,
            *sorted(one.measurement.factors.items(), key=str),
            *sorted(one.labels.items()),
        )
        for one in LIBRARY[slug].entries
    )
    assert seen.most_common(1)[0][1] == 1


def test_cells_of_two_bm_flash_tables_have_the_same_factors() -> None:
    def cells(slug: str) -> set[frozenset[tuple[str, object]]]:
        return {frozenset(one.measurement.factors.items()) for one in LIBRARY[slug].entries}

    assert cells("mtron-raid5-4") < cells("mtron-raid0-12")
    assert cells("dell-pe2970-perc5i") > cells("supermicro-arc1260")


def test_one_setting_separates_the_two_tables_of_dell() -> None:
    default, tuned = (
        {frozenset(one.measurement.factors.items()) for one in entries_of("dell-pe2970-perc5i", path)}
        for path in ("Default settings", "Tuned block device layer")
    )
    assert {test - {("read_ahead_sectors", "8192")} for test in tuned} < default
    assert all(("read_ahead_sectors", "8192") in test for test in tuned)
