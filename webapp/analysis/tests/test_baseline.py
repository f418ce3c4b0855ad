"""The series that the others are compared with, if a person chose none."""

import pytest

from webapp.analysis.comparing import compare
from webapp.analysis.question import CompareQuery
from webapp.results.models import Import, Result, known
from webapp.results.reading.filter import ResultFilter
from webapp.runs.models import SettingChange
from webapp.tests.factories.imports import an_import
from webapp.tests.factories.results import START, Lab

pytestmark = pytest.mark.django_db
SCHEDULERS = CompareQuery(x="iodepth", series=("scheduler",))


def changed(results: list[Result], before: str, *, restoring: bool = False) -> None:
    for result in results:
        SettingChange.objects.create(
            attempt=known(result.stream_run).attempt, at=START, name="scheduler", device="sda", before=before,
            asked="none", observed="none", restoring=restoring,
        )  # fmt: skip


def test_the_value_of_the_host_before_the_run_is_the_baseline(lab: Lab) -> None:
    changed(lab.measure(100.0, 101.0, scheduler="bfq"), before="mq-deadline")
    changed(lab.measure(110.0, 111.0, scheduler="none"), before="bfq")  # as the trial before left it
    lab.measure(105.0, 106.0, scheduler="mq-deadline")
    assert compare(SCHEDULERS).baseline == "mq-deadline"


def test_without_a_known_value_the_first_series_is_the_baseline(lab: Lab) -> None:
    lab.measure(100.0, scheduler="none")
    changed(lab.measure(100.0, scheduler="bfq"), before="kyber")
    assert compare(SCHEDULERS).baseline == "bfq"


def test_hosts_that_had_different_values_have_no_common_default(lab: Lab) -> None:
    other = Lab(lab.target, number=2)
    changed(lab.measure(100.0, scheduler="none"), before="none")
    changed(other.measure(100.0, scheduler="bfq"), before="mq-deadline")
    assert compare(SCHEDULERS).baseline == "bfq"


def test_the_setting_that_was_left_alone_is_the_baseline(lab: Lab) -> None:
    lab.measure(100.0, scheduler="bfq")
    lab.measure(100.0)
    assert compare(SCHEDULERS).baseline == "not set"


def test_a_chosen_baseline_comes_first(lab: Lab) -> None:
    changed(lab.measure(100.0, scheduler="none"), before="none")
    lab.measure(100.0, scheduler="bfq")
    assert compare(CompareQuery(x="iodepth", series=("scheduler",), baseline="bfq")).baseline == "bfq"


def test_a_published_reference_comes_before_the_alphabet(lab: Lab) -> None:
    lab.measure(100.0, iodepth=1)
    made = an_import(drive="ZZ1")
    Import.objects.filter(pk=made.pk).update(slug="zz1")
    by_model = CompareQuery(x="iodepth", series=("model",), metric="bytes_per_s", results=ResultFilter(references=True))
    assert compare(by_model).baseline == "ZZ1"
