"""A run that could write more than is left of a drive's rated endurance is not started."""

from typing import Any

import pytest

from webapp.hosts.inventory.endurance import forget_endurance, rate_endurance
from webapp.hosts.models import Target
from webapp.plans.document import Part, PlanDocument
from webapp.plans.preview import preview
from webapp.runs.models import Run
from webapp.runs.services import StartRefused, start_run
from webapp.runs.tests.test_layouts import a_pool
from webapp.tests.factories.hosts import CAPABILITIES, a_drive, a_host, a_target
from webapp.tests.factories.plans import a_version

pytestmark = pytest.mark.django_db
GIB = 2**30


def document(**factors: str) -> PlanDocument:
    return PlanDocument(title="W", parts=(Part(name="w", factors={"size": "64m", **factors}),), repeats=2)


def writes(amount: str) -> PlanDocument:
    return document(pattern="randwrite", amount=amount)


def start(target: Target, plan: PlanDocument, **given: Any) -> Run:
    return start_run(version=a_version(plan), targets=[target], by=None, armed=[target.serial], **given)


def rate(target: Target, gib: float) -> None:
    rate_endurance(target=target, by=None, source="datasheet", tbw_tb=gib * GIB / 10**12)


def test_it_is_refused_in_words_and_starts_once_it_writes_less_or_the_rating_is_gone() -> None:
    told = {"device": "sda", "serial": "S1", "host_written_bytes": 6 * GIB, "percent_used": 10}
    drive = a_drive(a_host(health=[told]), serial="S1")
    rate(drive, 10)
    with pytest.raises(StartRefused) as refused:
        start(drive, writes("2.5g"))
    assert refused.value.code == "endurance_exceeded"
    for words in ("5.37 GB", "10.7 GB", "4.29 GB is left", "datasheet"):
        assert words in refused.value.message
    assert not Run.objects.exists()
    start(drive, writes("2g"))
    start(drive, document(pattern="randread", runtime="3"))
    forget_endurance(target=drive, by=None)
    start(drive, writes("2.5g"))


def test_files_that_are_written_first_count() -> None:
    folder = a_target()
    rate(folder, 0.05)
    with pytest.raises(StartRefused, match=r"67\.1 MB"):
        start(folder, document(pattern="randread", runtime="3"))


def test_each_drive_of_a_pool_counts_with_all_that_is_written() -> None:
    host = a_host(capabilities=CAPABILITIES | {"layouts": ["md", "xfs"]})
    drives = [a_drive(host) for _ in range(2)]
    rate(drives[1], 1)
    pool = a_pool(host, drives)
    plan = document(pattern="randwrite", amount="1g", layout="raid0 x2 chunk 64k")
    made = preview(plan, [pool])
    (use,) = made.endurance
    assert (use.target, use.bytes_most, use.too_much) == (drives[1], 2 * GIB, True)
    with pytest.raises(StartRefused, match=str(drives[1])):
        start_run(version=a_version(plan), targets=[pool], by=None, armed=[drive.serial for drive in drives])


def test_the_preview_says_percent_where_it_is_rated_and_the_drives_own_word_where_not() -> None:
    told = {"device": "sda", "serial": "S1", "percent_used": 10}
    drive = a_drive(a_host(health=[told]), serial="S1")
    (use,) = preview(writes("1g"), [drive]).endurance
    assert (use.bytes_most, use.percent_most, use.too_much, use.endurance.percent_used) == (2 * GIB, None, False, 10)
    rate(drive, 8)
    (use,) = preview(writes("1g"), [drive]).endurance
    assert use.percent_most == pytest.approx(25, rel=1e-6)
    assert preview(document(pattern="randread", runtime="3"), [drive]).endurance == ()
    assert preview(writes("1g"), [a_drive()]).endurance == ()


def test_what_the_policy_lets_one_run_write_is_kept() -> None:
    drive = a_drive(max_write_bytes=GIB)
    with pytest.raises(StartRefused, match=r"2\.15 GB to .* allows 1\.07 GB per run") as refused:
        start(drive, writes("1g"))
    assert refused.value.code == "write_limit_exceeded"
    (use,) = preview(writes("1g"), [drive]).endurance
    assert (use.over_limit, use.too_much, use.limit_bytes) == (True, False, GIB)
    start(drive, writes("512m"))
