"""The pages of imports, and the same through the API."""

import csv
import io
import json
import re
import tarfile

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.test import Client

from webapp.core.models import Role
from webapp.core.services import create_api_token
from webapp.imports import services
from webapp.imports.reading.limits import Limits
from webapp.imports.services import begin_import
from webapp.results.models import Import, ImportState, Result
from webapp.tests.factories.imports import PLAIN, an_import
from webapp.tests.factories.people import a_user

pytestmark = pytest.mark.django_db
AS_JSON = {"Accept": "application/json"}


def a_file(name: str = "table.csv", text: str = PLAIN) -> SimpleUploadedFile:
    return SimpleUploadedFile(name, text.encode())


def a_folder(**files: str) -> SimpleUploadedFile:
    """As the script packs it."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.GNU_FORMAT) as archive:
        for name, text in files.items():
            entry = tarfile.TarInfo(name.replace("__", "/"))
            entry.size = len(text.encode())
            archive.addfile(entry, io.BytesIO(text.encode()))
    return SimpleUploadedFile("folder.tar", buffer.getvalue())


def test_without_scripts_the_form_imports_its_files(operator: Client) -> None:
    labels = {"drive": "PM9A3", "others": "firmware: GDC5602Q\n"}
    form = {"title": "Lab", **labels, "file": [a_file(), a_file("n.txt", "x")]}
    answer = operator.post("/imports/new/", form, follow=True)
    page = answer.content.decode()
    assert answer.redirect_chain == [("/imports/1/", 302)]
    assert "<h1>Lab</h1>" in page
    assert "151k" in page or "151" in page
    assert "The format of this file is not known." in page
    assert "firmware: GDC5602Q" in page
    assert Import.objects.get().state == ImportState.DONE


OWN_TABLE = "Workload;Block;IO/s;99 %;Firmware\nrandread;4k;10200;0.18;A1\nrandwrite;4k;5000;0.9;A1\n"
COLUMNS = "Workload = rw\nBlock = bs\nIO/s = iops\n99 % = latency_p99_ms\n"


def test_columns_of_a_csv_are_stated_in_the_form(operator: Client) -> None:
    form: dict[str, object] = {"title": "Lab", "file": a_file(text=OWN_TABLE)}
    page = operator.post("/imports/new/", form, follow=True).content.decode()
    assert "It has the columns `Workload`, `Block`, `IO/s`, `99 %`, `Firmware`." in page
    assert "state in “Columns of CSV files”" in page
    form = {"title": "Lab", "file": a_file(text=OWN_TABLE), "columns": COLUMNS}
    page = operator.post("/imports/new/", form, follow=True).content.decode()
    assert "Column IO/s" in page
    rows = Result.objects.order_by("id").values_list("point", "direction", "iops", "p99_ns", "origin__other")
    assert list(rows) == [
        ({"pattern": "randread", "block_size": 4096}, "read", 10200, 180_000, {"Firmware": "A1"}),
        ({"pattern": "randwrite", "block_size": 4096}, "write", 5000, 900_000, {"Firmware": "A1"}),
    ]


def test_columns_are_those_of_all_portions_and_only_of_csv(operator: Client) -> None:
    begun = operator.post("/imports/new/", {"title": "Lab", "columns": COLUMNS}, headers=AS_JSON).json()
    text = OWN_TABLE.replace("10200", "7")
    first = operator.post(begun["files_url"], {"file": [a_file("a.csv", OWN_TABLE), a_file("n.txt", "note")]}).json()
    second = operator.post(begun["files_url"], {"file": [a_file("b.csv", text), a_file("c.csv", PLAIN)]}).json()
    assert (first["results"], second["results"], first["refused"], second["refused"]) == (2, 5, 1, 0)
    third = operator.post(begun["files_url"], {"file": a_file("d.csv", "Size,Rate\n4,5\n")}).json()
    assert third["refused"] == 1
    reasons = list(Import.objects.get().files.exclude(reason="").order_by("id").values_list("reason", flat=True))
    assert reasons[0].startswith("The format of this file is not known.")
    assert reasons[1].startswith("The CSV has none of the stated columns")
    assert all(f"`{name}`" in reasons[1] for name in ("Workload", "Block", "IO/s", "99 %"))
    assert reasons[1].endswith("It has `Size`, `Rate`.")


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("IO/s: iops", "Write column = field"),
        ("IO/s = ipos", "`ipos` is not a field. Did you mean `iops`? Fields are results with their unit"),
        ("A = iops\nB = kiops", "`A` and `B` have the same field"),
        ("A = iops\nA = direction", "`A` is stated twice"),
    ],
)
def test_wrong_columns_are_refused_before_anything_is_stored(operator: Client, columns: str, words: str) -> None:
    answer = operator.post("/imports/new/", {"title": "Lab", "columns": columns}, headers=AS_JSON)
    assert (answer.status_code, words in answer.json()["problem"]) == (422, True)
    assert Import.objects.count() == 0


def test_the_first_row_of_a_csv_is_shown_before_anything_is_stored(viewer: Client) -> None:
    def preview(columns: str, head: str) -> dict[str, object]:
        found: dict[str, object] = viewer.post("/imports/columns/", {"columns": columns, "head": head}).json()
        return found

    assert preview(COLUMNS, OWN_TABLE) == {
        "columns": ["Workload", "Block", "IO/s", "99 %", "Firmware"],
        "problem": "",
        "row": "read · Pattern: randread · Block size: 4 KiB · IOPS: 10.2k · p99 latency: 180 µs · Firmware: A1",
    }
    assert preview("", OWN_TABLE)["problem"] == "A row has no result: no IOPS, no bandwidth and no latency."
    assert "`x` is not a field" in str(preview("IO/s = x", OWN_TABLE)["problem"])
    nothing = {"columns": [], "problem": "", "row": ""}
    assert preview(COLUMNS, '{"fio version": "fio-3.33", "jobs": []}') == nothing
    assert preview(COLUMNS, "") == nothing
    assert Import.objects.count() == 0


def test_the_script_sends_a_folder_in_portions(operator: Client) -> None:
    begun = operator.post("/imports/new/", {"title": "Lab", "pattern": "{drive}/*.csv"}, headers=AS_JSON).json()
    first = operator.post(begun["files_url"], {"file": a_folder(A__t="no", **{"A__t.csv": PLAIN})}).json()
    second = operator.post(begun["files_url"], {"file": a_folder(**{"B__t.csv": PLAIN.replace("10200", "1")})}).json()
    assert (first, second) == ({"files": 2, "results": 3, "refused": 1}, {"files": 1, "results": 3, "refused": 0})
    assert operator.post(begun["end_url"]).url == begun["url"]  # type: ignore[attr-defined]
    paths = Import.objects.get().files.order_by("id").values_list("path", flat=True)
    assert list(paths) == ["A/t", "A/t.csv", "B/t.csv"]
    assert {"A", "B"} == set(Result.objects.values_list("origin__drive", flat=True))


@pytest.mark.parametrize(
    ("form", "words"),
    [
        ({"title": "x"}, "Choose files"),
        ({"title": "x", "pattern": "{", "file": a_file()}, "bracket"),
        ({"title": "x", "others": "firmware", "file": a_file()}, "is not a label"),
    ],
)
def test_what_is_missing_or_wrong_is_said(operator: Client, form: dict[str, object], words: str) -> None:
    page = operator.post("/imports/new/", form, follow=True).content.decode()
    assert words in page
    assert Import.objects.count() == 0


def test_the_script_gets_a_refusal_as_json(operator: Client) -> None:
    answer = operator.post("/imports/new/", {"title": ""}, headers=AS_JSON)
    assert (answer.status_code, "title" in answer.json()["problem"]) == (422, True)
    number = an_import().number
    answer = operator.post(f"/imports/{number}/files/", {"file": a_file()})
    assert (answer.status_code, answer.json()["problem"]) == (422, f"Import {number} is not yours. Start your own.")


def test_an_import_that_was_not_ended_says_so_and_can_be_ended(operator: Client) -> None:
    number = operator.post("/imports/new/", {"title": "Lab"}, headers=AS_JSON).json()["url"].split("/")[2]
    assert "This import is not finished" in operator.get(f"/imports/{number}/").content.decode()
    operator.post(f"/imports/{number}/end/")
    assert "This import is not finished" not in operator.get(f"/imports/{number}/").content.decode()


def test_undo_asks_and_then_deletes(operator: Client) -> None:
    operator.post("/imports/new/", {"title": "Lab", "file": a_file()})
    assert "Undo import 1?" in operator.get("/imports/1/").content.decode()
    page = operator.post("/imports/1/undo/", follow=True).content.decode()
    assert "Import 1 and its 3 results are deleted." in page
    assert Result.objects.count() == 0


def test_files_and_reasons_are_listed(viewer: Client) -> None:
    an_import()
    page = viewer.get("/imports/1/?show=refused").content.decode()
    assert "results/notes.txt" in page
    assert "results/table.csv" not in page
    assert "results/table.csv" in viewer.get("/imports/1/?show=files").content.decode()
    assert "Undo import" not in page


def test_the_limits_count_all_files_of_a_request(operator: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(services, "LIMITS", Limits(files=2))
    files = [a_file(f"{n}.csv", f"direction,iops\nread,{n + 1}\n") for n in range(5)]
    operator.post("/imports/new/", {"title": "Lab", "file": files})
    assert Result.objects.count() == 2
    (reason,) = Import.objects.get().files.exclude(reason="").values_list("reason", flat=True)
    assert "Number of files left out: 3." in reason


def test_files_with_the_same_name_are_not_repeats(operator: Client) -> None:
    """A script may send files of several folders: the names of their folders are not sent."""
    files = [a_file("a.csv", f"direction,iops\nread,{n}\n") for n in (1, 2)]
    operator.post("/imports/new/", {"title": "Lab", "file": files})
    origins = Import.objects.get().origins.order_by("number")
    assert [(origin.file.path, origin.repeat) for origin in origins] == [("a.csv", 1), ("2/a.csv", 1)]


def test_a_name_that_is_too_long_for_a_file_system_is_no_error(operator: Client) -> None:
    name = "ä" * 200 + ".csv"  # 404 bytes
    operator.post("/imports/new/", {"title": "Lab", "file": a_file(name, "direction,iops\nread,1\n")})
    assert Import.objects.get().files.get().path == name
    assert Result.objects.count() == 1


def test_files_left_out_for_the_same_reason_are_one_line(operator: Client) -> None:
    folder = {f"D__{n:02}.csv": f"direction,iops\nread,{n + 1}\n" for n in range(25)}
    for _ in range(2):
        operator.post("/imports/new/", {"title": "Lab", "file": a_folder(**folder)})
    page = operator.get("/imports/2/").content.decode()
    (rows,) = re.findall(r'id="left-out">.*?<tbody>(.*?)</tbody>', page, re.DOTALL)
    assert rows.count("<tr>") == 1
    assert "<td>The same content was imported before, by import 1. To change its labels" in rows
    assert '<td class="num">25</td>' in rows
    assert rows.count("The file is D/") == rows.count("<li>") == 20
    assert "and 5 other files" in rows


def test_what_all_tests_state_is_shown_once(viewer: Client) -> None:
    an_import(text="direction,iops,tray,chassis\nread,5,A,T640\nread,6,B,T640\n")
    page = viewer.get("/imports/1/").content.decode()
    common = "Host: lab1 · Drive model: PM9A3 · Tool: CSV · folder: results · chassis: T640"
    assert f"All tests below:</span> {common}</p>" in page
    heads = re.findall(r'<th[^>]* scope="col">(.*?)</th>', page)
    assert heads[2:] == ["Test", "Direction", "IOPS", "Repeat"]
    assert re.findall(r'<td class="small muted" colspan="3">(.*?)</td>', page) == ["tray: A", "tray: B"]


def test_an_import_opens_its_drives_side_by_side(viewer: Client) -> None:
    made = an_import()
    assert '<a class="btn" href="/bench/?product=import%3A1">Bench</a>' in viewer.get("/imports/1/").content.decode()
    another = made.origins.latest("number")
    made.origins.filter(pk=another.pk).update(drive="PM1733")
    page = viewer.get("/imports/1/").content.decode()
    assert 'href="/bench/?product=import%3A1%2FPM1733&amp;product=import%3A1%2FPM9A3"' in page


def test_empty_pages_say_what_to_do(viewer: Client) -> None:
    begin_import(title="Nothing", pattern="", given={}, by=None)
    page = viewer.get("/imports/").content.decode()
    assert "Importing requires the operator role." in page
    assert "No references are loaded." in viewer.get("/references/").content.decode()
    assert "This import has no results." in viewer.get("/imports/1/").content.decode()
    assert viewer.get("/imports/2/").status_code == 404


def test_labels_in_paths_are_shown_before_anything_is_stored(viewer: Client) -> None:
    paths = "lab1/PM9A3/randread-32-4.json\nnotes.txt"
    found = viewer.post("/imports/labels/", {"paths": paths, "pattern": "{drive}/{rw}-{iodepth}-{numjobs}.json"}).json()
    assert (found["matched"], found["of"], found["problem"]) == (1, 2, "")
    assert found["examples"][0]["text"] == "drive: PM9A3 · Pattern: randread · Jobs: 4 · Queue depth: 32"
    assert found["unmatched"] == ["notes.txt"]
    assert viewer.post("/imports/labels/", {"paths": paths, "pattern": "{"}).json()["problem"]


def test_logs_beside_a_test_are_not_listed_as_without_match(viewer: Client) -> None:
    log = "randread-iodepth-32-numjobs-4_bw.1.log"
    paths = f"PM9A3/randread-32-4.json\nPM9A3/{log}\nlogs only/{log}"
    pattern = "{drive}/{rw}-{iodepth}-{numjobs}.json"
    found = viewer.post("/imports/labels/", {"paths": paths, "pattern": pattern}).json()
    assert (found["matched"], found["of"], found["logs"]) == (1, 2, 1)
    assert [each["path"] for each in found["examples"]] == ["PM9A3/randread-32-4.json"]
    assert found["unmatched"] == [f"logs only/{log}"]


def test_results_and_exports_show_where_imported_results_are_from(viewer: Client) -> None:
    an_import()
    page = viewer.get("/results/?import=1&columns=import,tool,model,iops,ios").content.decode()
    assert 'href="/imports/1/?test=2#test-2">import 1 #2</a>' in page
    assert page.count("Old tests</td>") == 3
    text = b"".join(viewer.get("/results.csv?import=1").streaming_content).decode()  # type: ignore[attr-defined]
    first = next(csv.reader(text.splitlines()[1:]))
    assert first[:2] == ["", "Old tests"]
    assert json.loads(first[2]) == {"device.model": "PM9A3", "folder": "results"}
    assert first[3:8] == ["", "", "3", "1", "lab1"]


def test_the_link_to_a_test_opens_the_page_that_has_it(viewer: Client) -> None:
    an_import(text="direction,name,iops\n" + "".join(f"read,t{number},{number}\n" for number in range(1, 251)))
    assert 'id="test-204"' in viewer.get("/imports/1/?test=204").content.decode()
    assert 'id="test-100"' in viewer.get("/imports/1/?test=100").content.decode()
    for other in ("x", "9" * 30, ""):
        assert 'id="test-1"' in viewer.get(f"/imports/1/?test={other}").content.decode()
    assert 'id="test-250"' in viewer.get("/imports/1/?test=999").content.decode()
    assert 'id="test-250"' in viewer.get("/imports/1/?test=204&page=3").content.decode()


def test_imported_results_can_be_compared(viewer: Client) -> None:
    an_import()
    found = viewer.get("/api/v1/compare?import=1&x=iodepth&series=pattern")
    assert found.status_code == 200
    assert {series["name"] for series in found.json()["panels"][0]["series"]} == {"randread", "randwrite"}


def test_the_api_imports_lists_and_undoes() -> None:
    client = Client(
        headers={"Authorization": f"Bearer {create_api_token(user=a_user('olga', Role.OPERATOR), name='CI')}"}
    )
    form = {"title": "CI", "labels": "drive: PM9A3\nfirmware: A1", "file": [a_file(), a_file("n.txt", "x")]}
    made = client.post("/api/v1/imports", form)
    assert made.status_code == 201, made.content
    assert (made.json()["results_made"], made.json()["by"], made.json()["state"]) == (3, "olga", "done")
    ((reason, count),) = made.json()["refused"].items()
    assert (reason.startswith("The format of this file is not known."), count) == (True, 1)
    files = client.get("/api/v1/imports/1/files?refused=true").json()
    assert [file["path"] for file in files["items"]] == ["n.txt"]
    row = client.get("/api/v1/results?import=1").json()["items"][0]
    assert (row["trial"], row["run"], row["imported"], row["tool"]) == (None, 0, 1, "CSV")
    assert (row["ios"], row["import_title"], row["reference"]) == (None, "CI", False)
    assert client.delete("/api/v1/imports/1").status_code == 204
    assert client.get("/api/v1/imports/1").status_code == 404
    assert json.loads(client.post("/api/v1/imports", {"title": "x"}).content)["code"] == "import_empty"


def test_the_api_adds_files_in_several_requests_until_the_import_is_ended() -> None:
    token = create_api_token(user=a_user("olga", Role.OPERATOR), name="CI")
    client = Client(headers={"Authorization": f"Bearer {token}"})
    begun = client.post("/api/v1/imports", {"title": "CI", "more": "true", "labels": "drive: PM9A3"})
    assert (begun.status_code, begun.json()["state"], begun.json()["files_read"]) == (201, "reading", 0)
    client.post("/api/v1/imports/1/files", {"file": [a_file(), a_file("n.txt", "x")]})
    logs = [a_file(f"t_iops.{job}.log", "1000, 500, 1, 0\n") for job in (1, 2)]
    added = client.post("/api/v1/imports/1/files", {"file": logs}).json()
    assert (added["files_read"], added["results_made"], added["files_refused"]) == (4, 4, 1)
    assert Result.objects.filter(iops=1000, origin__drive="PM9A3").count() == 1
    for _ in range(2):
        assert client.post("/api/v1/imports/1/end").json()["state"] == "done"
    assert client.post("/api/v1/imports/1/files", {"file": a_file()}).json()["code"] == "import_ended"
    assert client.post("/api/v1/imports/1/files", {}).status_code == 422
    assert client.post("/api/v1/imports/2/end").status_code == 404
    other = Client(headers={"Authorization": f"Bearer {create_api_token(user=a_user('otto', Role.ADMIN), name='x')}"})
    for address in ("files", "end"):
        answer = other.post(f"/api/v1/imports/1/{address}", {"file": a_file()})
        assert answer.json()["code"] == "import_of_another"


def test_a_test_with_logs_has_a_page_with_its_time_line_and_is_drawn_by_explore(operator: Client) -> None:
    logs = {"t_iops.1.log": "1000, 500, 1, 0\n2000, 700, 1, 0\n", "t_clat.1.log": "1000, 80, 1, 0\n2000, 90, 1, 0\n"}
    form = {"title": "Lab", "file": [a_file(name, text) for name, text in logs.items()]}
    page = operator.post("/imports/new/", form, follow=True).content.decode()
    assert 'href="/imports/1/tests/1/"' in page
    page = operator.get("/imports/1/tests/1/").content.decode()
    assert '"mean":[500.0,700.0]' in page
    assert 'href="/imports/1/?test=1#test-1"' in page
    assert '"mean":[80.0,90.0]' in operator.get("/imports/1/tests/1/?metric=latency_mean").content.decode()
    assert "have no Bandwidth" in operator.get("/imports/1/tests/1/?metric=bytes_per_s").content.decode()
    assert operator.get("/imports/1/tests/2/").status_code == 404
    explore = operator.get("/explore/?import=1&view=timeline&metric=iops", follow=True).content.decode()
    assert '"mean":[500.0,700.0]' in explore


def test_the_api_takes_the_columns_of_a_csv() -> None:
    secret = create_api_token(user=a_user("otto", Role.OPERATOR), name="script")
    client = Client(headers={"Authorization": f"Bearer {secret}"})
    made = client.post("/api/v1/imports", {"columns": COLUMNS, "file": a_file(text=OWN_TABLE)})
    assert (made.status_code, made.json()["results_made"]) == (201, 2)
    assert made.json()["columns"]["99 %"] == "latency_p99_ms"
    wrong = client.post("/api/v1/imports", {"columns": "IO/s = x", "file": a_file(text=OWN_TABLE)})
    assert (wrong.status_code, wrong.json()["code"]) == (422, "import_columns")
