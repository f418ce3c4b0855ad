"""Pages about plans, runs and results of an engine that has no ramp, no run time and no queue."""

from urllib.parse import parse_qs, urlsplit

from django.test import Client
from django.utils import timezone

from webapp.plans.document import Part, PlanDocument
from webapp.plans.estimate import estimate
from webapp.plans.expand import expand
from webapp.plans.tests.helpers import directory
from webapp.results.models import DriveReading, Result
from webapp.tests.factories.hosts import a_host, storage1_scratch
from webapp.tests.factories.plans import a_version, first_look
from webapp.tests.factories.results import Lab
from webapp.tests.factories.runs import first_look_run, start_trial

COPIES = PlanDocument(
    title="Copies", parts=(Part(name="main", factors={"engine": "file_copy", "size": "64M", "files": "2"}),)
)


def test_the_list_of_plans_shows_a_plan_of_copies(operator: Client) -> None:
    a_version(COPIES, slug="copies")
    page = operator.get("/plans/")
    assert page.status_code == 200
    assert "Copies" in page.content.decode()
    assert operator.get("/plans/copies/").status_code == 200


def test_the_phase_of_a_trial_is_a_sentence_on_every_page(viewer: Client) -> None:
    target = storage1_scratch(a_host("storage1"))
    run = first_look_run(first_look(), [target], repeats=1)
    trial = run.trials.order_by("index")[0]
    start_trial(trial)
    for address in ("/hosts/storage1/", "/hosts/storage1/targets/scratch/", f"/runs/{run.number}/trials/1/"):
        page = viewer.get(address).content.decode()
        assert "measuring" in page, address
        assert "&#x27;type&#x27;" not in page, address


def test_copies_need_the_space_of_their_sources_again() -> None:
    facts = directory()
    expansion = expand(COPIES, [facts], seed=1)
    assert expansion.problems == ()
    assert estimate(expansion).space_bytes == 2 * 2 * 64 * 2**20


def copies_measured(**seconds: tuple[float, ...]) -> Lab:
    """A run of copies: for each method the copy times of its repeats."""
    lab = Lab(storage1_scratch(a_host("storage1")), version=a_version(COPIES, slug="copies"))
    for method, times in seconds.items():
        for result, copy_s in zip(
            lab.measure(*(100 / one for one in times), direction="write", engine="file_copy", copy_method=method),
            times,
            strict=True,
        ):
            Result.objects.filter(pk=result.pk).update(metrics={"copy_s": copy_s})
    return lab


def test_the_plan_page_names_the_engine_and_offers_no_job_file(operator: Client) -> None:
    a_version(COPIES, slug="copies")
    page = operator.get("/plans/copies/").content.decode()
    assert "File copy · 64 MiB each · 2 files" in page
    assert "Export as YAML" in page
    assert "Export as fio job file" not in page
    first_look()
    assert "Export as fio job file" in operator.get("/plans/first-look/").content.decode()


def test_the_editor_shows_the_labels_of_engines(operator: Client) -> None:
    a_version(COPIES, slug="copies")
    page = operator.get("/plans/copies/edit/").content.decode()
    assert 'data-choice="file_copy" aria-pressed="false">File copy</button>' in page


def test_a_run_of_copies_is_compared_by_copy_time_with_the_methods_as_series(viewer: Client) -> None:
    lab = copies_measured(buffered=(2.0, 2.1, 2.0, 2.05), direct=(4.0, 4.1, 4.05, 4.0))
    asked = parse_qs(urlsplit(viewer.get(f"/explore/?run={lab.run.number}")["Location"]).query)
    assert (asked["series"], asked["metric"]) == (["copy_method"], ["copy_s"])
    assert asked["x"] != ["copy_method"]
    page = viewer.get(f"/runs/{lab.run.number}/").content.decode()
    assert "direct has 98 % higher copy time than buffered" in page
    assert "% slower than buffered" not in page
    assert 'data-grid-metric="own" aria-pressed="true">Copy time</button>' in page
    assert ">2.00 s</a>" in page
    assert "± 2.35 %" in page  # of 2.0, 2.1, 2.0 and 2.05 s


def test_the_read_directions_of_copies_are_not_counted_as_left_out(viewer: Client) -> None:
    lab = copies_measured(buffered=(2.0, 2.1), direct=(4.0, 4.1))
    for result in lab.run.results.all():
        result.pk, result.direction, result.metrics = None, "read", {}
        result.save()
    address = f"/explore/?run={lab.run.number}&x=block_size&series=copy_method&metric="
    assert "left out" not in viewer.get(f"{address}copy_s").content.decode()
    assert "8 results are left out" in viewer.get(f"{address}fsync_s").content.decode()


def test_the_table_of_copies_shows_their_copy_time_first(viewer: Client) -> None:
    lab = copies_measured(buffered=(2.0,))
    page = viewer.get(f"/results/?run={lab.run.number}").content.decode()
    assert page.index("Copy time</a>" if "Copy time</a>" in page else ">Copy time") < page.index("Bandwidth</a>")
    assert "2.00 s" in page


def test_results_of_several_engines_are_shown_by_iops(viewer: Client) -> None:
    lab = copies_measured(buffered=(2.0,))
    lab.measure(1000.0, iodepth=32)
    assert "metric" not in parse_qs(urlsplit(viewer.get(f"/explore/?run={lab.run.number}")["Location"]).query)


def test_bytes_written_to_drives_are_headed_by_the_engine(viewer: Client) -> None:
    lab = copies_measured(buffered=(2.0,))
    attempt = lab.run.attempts.get()
    for moment in ("before", "after"):
        DriveReading.objects.create(
            attempt=attempt, at=attempt.created_at, moment=moment, device="sda", drive="wwn-1", boot_id="b",
            kernel_written_bytes=0,
        )  # fmt: skip
    page = viewer.get(f"/runs/{lab.run.number}/").content.decode()
    assert '<th class="num">File copy</th>' in page
    assert '<th class="num">fio</th>' not in page


def test_the_page_of_a_trial_shows_the_time_and_the_size_of_a_short_copy(viewer: Client) -> None:
    lab = copies_measured(buffered=(0.05,))
    Result.objects.update(runtime_ms=50, ios=16, steadiness="")
    trial = lab.run.trials.get()
    trial.attempts.update(ended_at=timezone.now(), phase={"name": "measuring"})
    trial.point = trial.point | {"size": 16 * 2**20}
    trial.save(update_fields=["point"])
    page = viewer.get(f"/runs/{lab.run.number}/trials/{trial.number}/").content.decode()
    assert '<td class="num">16</td>' in page
    assert "0.0500 s" in page
    assert "buffered copy · 16 MiB" in page
    assert "–." not in page
    assert "measuring" not in page
