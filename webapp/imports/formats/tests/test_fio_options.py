"""Options of fio's JSON as factors."""

import pytest

from webapp.imports.formats.fio_options import factors
from webapp.plans.tests.fio_lines import TAKEN


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ({"rw": "read:-8k", "bs": "4k"}, {"pattern": "read", "reverse": True}),
        ({"rw": "read:60k", "bs": "4k"}, {"skip": 60 * 1024}),
        ({"rw": "randrw", "bs": "4k,64k"}, {"block_size": 4096, "write_block_size": 65_536}),
        ({"rw": "randwrite", "bs": "4k,64k"}, {"block_size": 65_536}),
        ({"rw": "randread", "thinktime": "5ms", "rate": "50m"}, {"thinktime": 5000, "rate": 50 * 2**20}),
    ],
)
def test_it_reads(options: dict[str, str], expected: dict[str, object]) -> None:
    assert expected.items() <= factors(options)[0].items()


def test_a_gap_without_a_factor_is_kept_as_text() -> None:
    found, other = factors({"rw": "read:-4k", "bs": "4k"})
    assert "pattern" not in found
    assert other["rw"] == "read:-4k"


def test_every_line_of_a_job_file_can_be_read() -> None:
    for job, line, _ in TAKEN:
        options = dict(each.partition("=")[::2] for each in f"{job}{line}".splitlines())
        factors(options)
