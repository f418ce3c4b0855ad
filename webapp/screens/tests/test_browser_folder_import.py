"""A folder chosen in Debian's Chromium that is too large for one request."""

import json
from pathlib import Path

import pytest
from playwright.sync_api import Page, expect

from webapp.imports.formats.tests.examples import DATA
from webapp.results.models import ImportedFile, Origin
from webapp.results.selectors import series_of

pytestmark = [pytest.mark.browser, pytest.mark.django_db(transaction=True)]
TESTS, JOBS, ROWS = 6, 2, 48_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Of fio-plot's bench-fio: 36 MiB, of which one request takes 32 MiB."""
    made = tmp_path / "PM9A3"
    made.mkdir()
    document = json.loads((DATA / "fio-json" / "3.33-group.json").read_text())
    for depth in range(1, TESTS + 1):
        options = {"rw": "randwrite", "iodepth": str(depth), "numjobs": str(JOBS), "bs": "4k"}
        iops = JOBS * 100 * depth
        write = document["jobs"][0]["write"] | {"iops": iops, "bw_bytes": iops * 1024, "runtime": ROWS * 1000}
        job = {**document["jobs"][0], "job options": options, "read": {}, "write": write}
        text = json.dumps({**document, "timestamp": 1_600_000_000 + depth, "jobs": [job]})
        (made / f"randwrite-{depth}-{JOBS}.json").write_text(text)
        rows = "".join(f"{1000 * row:012}, {100 * depth:012}, 1, 0\n" for row in range(1, ROWS + 1))
        for name in (f"{kind}.{number}" for kind in ("bw", "iops") for number in range(1, JOBS + 1)):
            (made / f"randwrite-iodepth-{depth}-numjobs-{JOBS}_{name}.log").write_text(rows)
    return made


def test_a_test_and_its_logs_come_together_from_several_requests(page: Page, folder: Path, problems: list[str]) -> None:
    sent: list[str] = []
    page.on("request", lambda request: sent.append(request.url) if request.url.endswith("/files/") else None)
    page.goto("/imports/")
    page.locator("#import-folder").set_input_files(folder)
    expect(page.locator("#import-chosen")).to_contain_text("30 files")
    page.get_by_role("button", name="Import", exact=True).click()
    page.wait_for_url("**/imports/1/")
    assert len(sent) == 2
    assert not ImportedFile.objects.exclude(reason="").exists()
    assert Origin.objects.exclude(series=None).count() == Origin.objects.count() == TESTS
    for origin in Origin.objects.all():
        (points,) = series_of(origin).values()
        assert points[0]["iops"] == JOBS * 100 * origin.results.get().point["iodepth"]
    assert problems == []
