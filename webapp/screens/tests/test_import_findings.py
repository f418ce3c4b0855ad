"""Findings of imports are made once by a periodic task, stored, and read by the import's page and the overview."""

from datetime import timedelta
from io import StringIO

import pytest
from django.core.management import call_command
from django.test import Client
from django.utils import timezone
from django_celery_beat.models import PeriodicTask

from webapp.analysis.answer import FindingKind
from webapp.analysis.import_findings import findings_in, newest, stored
from webapp.analysis.models import ImportFindings
from webapp.imports.files import FileRead
from webapp.imports.files import Test as ImportedTest
from webapp.imports.measurement import Measurement
from webapp.imports.reading.limits import Read
from webapp.imports.services import add_found, add_read, begin_import, end_import
from webapp.results.models import Import
from webapp.screens import tasks
from webapp.screens.explore import import_findings
from webapp.screens.explore.import_findings import make_due
from webapp.screens.overview.views import news
from worker.contract.items import Direction

pytestmark = pytest.mark.django_db
CAPPED = {1: 458.0, 2: 919.0, 4: 1820.0, 8: 2000.0, 16: 2000.0, 32: 2000.0}


def an_import(*, has_ended: bool = True) -> Import:
    """A table of a drive that is capped at 2,000 IOPS, over 1 to 32 jobs."""
    made = begin_import(title="Capped", pattern="", given={}, by=None)
    measured = (
        Measurement(
            tool="CSV", name="", direction=Direction.READ, factors={"pattern": "randread", "numjobs": jobs},
            measured_at=None, iops=iops,
        )
        for jobs, iops in CAPPED.items()
    )  # fmt: skip
    add_read(
        made,
        [
            FileRead(
                path="a.csv", format="CSV", tests=tuple(ImportedTest(measured=(each,), labels={}) for each in measured)
            )
        ],
    )
    return end_import(made, by=None) if has_ended else made


def test_they_are_made_once_and_have_the_kind_and_the_place() -> None:
    made = an_import()
    assert stored(made) is None
    assert (make_due(60), make_due(60)) == (1, 0)
    conclusions = stored(made)
    assert conclusions is not None
    section = conclusions.sections[0]
    (finding,) = [each for each in section.findings if each.kind is FindingKind.SATURATION]
    assert section.levels[finding.level or 0] == "8"
    assert findings_in(conclusions, made.number)[0].kind is FindingKind.SATURATION


def test_an_open_import_has_none_and_without_time_none_is_started() -> None:
    an_import(has_ended=False)
    assert make_due(60) == 0
    an_import()
    assert make_due(0) == 0


def test_other_rules_make_them_again_and_rows_of_another_version_are_not_read(monkeypatch: pytest.MonkeyPatch) -> None:
    made = an_import()
    make_due(60)
    content = ImportFindings.objects.get().content
    ImportFindings.objects.update(content=content | {"version": content["version"] - 1})
    assert stored(made) is None
    monkeypatch.setattr("webapp.analysis.import_findings.VERSION", 99)
    assert (make_due(60), make_due(60)) == (1, 0)
    assert stored(made) is not None


def test_a_fault_of_the_rules_is_not_repeated(monkeypatch: pytest.MonkeyPatch) -> None:
    made = an_import()

    def broken(_: Import) -> None:
        raise ZeroDivisionError

    monkeypatch.setattr(import_findings, "sections_of", broken)
    assert (make_due(60), make_due(60)) == (1, 0)
    conclusions = stored(made)
    assert conclusions is not None
    assert not conclusions.sections


def test_the_page_reads_what_is_stored_and_does_not_compute_it(
    operator: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = an_import()
    assert "are being computed" in operator.get(f"/imports/{made.number}/").content.decode()
    make_due(60)
    monkeypatch.setattr(import_findings, "sections_of", None)
    page = operator.get(f"/imports/{made.number}/").content.decode()
    assert "IOPS level off at 2.00k" in page
    assert "are being computed" not in page


def test_the_page_leads_with_the_finding_and_its_chart_and_folds_its_files(operator: Client) -> None:
    made = an_import()
    make_due(60)
    response = operator.get(f"/imports/{made.number}/")
    first = response.context["first"][0]
    assert response.context["heading"] == first.finding.claim
    assert first.finding.claim not in first.text
    assert [line.name for line in first.chart.lines if line.dots]
    page = response.content.decode()
    places = [
        page.index(part) for part in ('class="small-chart"', '<details class="card mb-3" id="about">', 'id="test-1"')
    ]
    assert places == sorted(places)


def test_a_dismissed_finding_is_neither_heading_nor_lost(operator: Client) -> None:
    made = an_import()
    make_due(60)
    address = f"/imports/{made.number}/"
    before = operator.get(address).context
    operator.post(before["first"][0].review_url, {"verdict": "dismissed"})
    after = operator.get(address).context
    assert after["heading"] != before["heading"]
    folded = [shown.finding.key for section in after["sections"] for shown in section.findings]
    assert before["first"][0].finding.key in folded


def test_an_import_of_refused_files_shows_the_reasons(operator: Client) -> None:
    made = begin_import(title="Notes", pattern="", given={}, by=None)
    add_found(made, [Read("notes.txt", "Nothing was measured.")])
    end_import(made, by=None)
    response = operator.get(f"/imports/{made.number}/")
    assert response.context["heading"] == "Notes"
    assert 'id="about" open' in response.content.decode()


def test_levels_of_which_nothing_is_stated_are_not_drawn() -> None:
    """A curve over sizes stays a curve beside a drive whose size is not stated."""
    values = ((10, 6400), (70, 2560), (100, 1920), (140, 960))
    table = "".join(f"randwrite,SSD,{size}G,{iops}\n" for size, iops in values)
    made = begin_import(title="Two drives", pattern="", given={}, by=None)
    add_found(made, [Read("table.csv", f"pattern,drive,size,iops\n{table}randwrite,Disk,,1472\n")])
    end_import(made, by=None)
    make_due(60)
    conclusions = stored(made)
    assert conclusions is not None
    pictures = [each.picture for each in findings_in(conclusions, made.number) if each.kind is FindingKind.TREND]
    assert [(picture.ordered, len(picture.levels)) for picture in pictures if picture] == [(True, 4)]


def test_news_have_the_most_important_finding_of_each_import() -> None:
    made = an_import()
    make_due(60)
    ((imported, sentence),) = newest(timezone.now() - timedelta(days=1), 3)
    assert imported == made
    (item,) = news().items
    assert (item.claim, item.title, item.address) == (sentence, "Import 1", f"/imports/{made.number}/")
    Import.objects.update(created_at=timezone.now() - timedelta(days=30))
    assert not news().items


def test_the_periodic_task_makes_them() -> None:
    call_command("setup", stdout=StringIO(), stderr=StringIO())
    assert PeriodicTask.objects.get(name="import findings").task == tasks.tick.name
    made = an_import()
    tasks.tick()
    assert stored(made) is not None


def partly_stated(table: str) -> list[str]:
    """The sentences about a load that is not stated."""
    made = begin_import(title="Two drives", pattern="", given={}, by=None)
    add_found(made, [Read("table.csv", table)])
    end_import(made, by=None)
    make_due(60)
    conclusions = stored(made)
    listed = findings_in(conclusions, made.number) if conclusions else ()
    return [each.sentence for each in listed if "not stated" in each.sentence]


def test_a_value_without_its_size_is_compared_with_each_size_as_measured() -> None:
    sizes = "randwrite,SSD,{}G,{}\n"
    head = "pattern,drive,size,iops\n" + "".join(
        sizes.format(*each) for each in ((10, 6400), (70, 2560), (100, 1920), (140, 960))
    )
    (sentence,) = partly_stated(f"{head}randwrite,Disk,,1472\n")
    assert all(words in sentence for words in ("×4.35 at 10 GiB", "+30 % at 100 GiB", "−35 % at 140 GiB"))
    assert not partly_stated(f"{head}randwrite,Disk,10G,1472\n")
    assert not partly_stated(f"{head}read,Disk,,1472\n")
