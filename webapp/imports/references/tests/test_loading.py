from datetime import UTC, datetime
from pathlib import Path

import pytest
from django.core.management import call_command

from webapp.core.models import AuditEntry
from webapp.imports.references import reading
from webapp.imports.references.about import ReferenceDamaged
from webapp.imports.references.reading import load_references
from webapp.results.models import BOTH, Import, ImportedFile, Origin, Result

pytestmark = pytest.mark.django_db
ABOUT = """\
title = "{title}"
source = "A. Author, “A page”"
date = "2010-07 to 2010-12"
[labels]
drive = "D1"
[[files]]
name = "figures.csv"
tool = "a tool"
"""
TABLE = """\
table,name,pattern,firmware,mib_per_s,latency_p95_ms,metric power_watt,note
T1,,randread,1.0,100.5,0.5,,A note.
T1,,randread,1.0,101,,,A note.
T2,,randread,1.0,99,,,
T2,power,,,,,9.5,
"""


@pytest.fixture
def library(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(reading, "DATA", tmp_path)
    for slug in ("one", "two"):
        (tmp_path / slug).mkdir()
        (tmp_path / slug / "reference.toml").write_text(ABOUT.format(title=f"Drive {slug}"))
        (tmp_path / slug / "figures.csv").write_text(TABLE)
    return tmp_path


def test_the_whole_library_is_stored() -> None:
    loaded = load_references()
    library = {one.slug: one for one in reading.references()}
    assert loaded.stored == tuple(sorted(library))
    assert not ImportedFile.objects.exclude(reason="")  # no entry is left out
    for slug, reference in library.items():
        stored = Import.objects.get(slug=slug)
        assert (stored.title, stored.source, stored.source_date) == (reference.title, reference.source, reference.date)
        assert stored.results_made == len(reference.entries) == stored.origins.count()
    assert Result.objects.filter(reference=False).count() == 0


def test_a_stored_entry_has_its_labels_and_figures(library: Path) -> None:
    load_references()
    first, second, other, power = Origin.objects.filter(imported__slug="one").order_by("number")
    result = first.results.get()
    assert (first.tool, first.drive, first.time_known) == ("a tool", "D1", False)
    assert (first.file.path, first.file.format, first.file.notes) == ("figures.csv", "a tool", ["A note."])
    assert first.other == {"firmware": "1.0", "table": "T1"}
    assert (result.direction, result.point) == ("read", {"pattern": "randread"})
    assert (result.bytes_per_s, result.p95_ns, result.iops) == (100.5 * 1024 * 1024, 500_000, None)
    assert result.measured_at == datetime(2010, 7, 1, tzinfo=UTC)
    assert [one.repeat for one in (first, second, other)] == [1, 2, 1]  # another table is another test
    assert (power.results.get().direction, power.results.get().metrics) == (BOTH, {"power_watt": 9.5})


def test_loading_twice_changes_nothing(library: Path) -> None:
    load_references()
    before = list(Origin.objects.order_by("id").values()), AuditEntry.objects.count()
    assert load_references().stored == ()
    assert (list(Origin.objects.order_by("id").values()), AuditEntry.objects.count()) == before


def test_a_changed_data_file_replaces_its_reference(library: Path) -> None:
    load_references()
    numbers = set(Import.objects.values_list("slug", "number"))
    untouched = set(Origin.objects.filter(imported__slug="two").values_list("id", flat=True))
    (library / "one" / "figures.csv").write_text(TABLE.replace("100.5", "200"))
    loaded = load_references()
    assert (loaded.stored, loaded.unchanged) == (("one",), ("two",))
    assert set(Import.objects.values_list("slug", "number")) == numbers
    assert set(Origin.objects.filter(imported__slug="two").values_list("id", flat=True)) == untouched
    assert Result.objects.filter(origin__imported__slug="one").count() == 4
    assert Result.objects.filter(bytes_per_s=200 * 1024 * 1024).count() == 1


def test_a_reference_without_data_files_is_removed(library: Path) -> None:
    load_references()
    for file in (library / "two").iterdir():
        file.unlink()
    (library / "two").rmdir()
    assert load_references().removed == ("two",)
    assert Import.objects.get().slug == "one"
    assert Result.objects.count() == 4
    assert AuditEntry.objects.filter(action="import.reference_removed").count() == 1


def test_nothing_is_stored_if_a_data_file_is_damaged(library: Path) -> None:
    (library / "two" / "figures.csv").write_text(TABLE.replace("100.5", "-1"))
    with pytest.raises(ReferenceDamaged, match=r"two/figures.csv, line 2"):
        load_references()
    assert Import.objects.count() == 0


def test_the_command_says_what_it_did(library: Path, capsys: pytest.CaptureFixture[str]) -> None:
    call_command("load_references")
    assert capsys.readouterr().out == "Loaded one.\nLoaded two.\n2 loaded, 0 unchanged, 0 removed.\n"
    call_command("load_references")
    assert capsys.readouterr().out == "0 loaded, 2 unchanged, 0 removed.\n"
