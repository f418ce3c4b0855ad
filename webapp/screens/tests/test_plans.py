import re
from collections.abc import Iterable
from datetime import timedelta

import msgspec
import pytest
from django.test import Client
from django.utils import timezone

from webapp.hosts.models import Host, Target
from webapp.plans.document import Part, PartStream, PlanDocument
from webapp.plans.models import Plan, PlanVersion
from webapp.results.models import Result
from webapp.runs.models import Run
from webapp.screens import point_words
from webapp.screens.plans.views import Unfit
from webapp.tests.factories.hosts import a_host, storage1_drive, storage1_scratch
from webapp.tests.factories.plans import FIRST_LOOK, first_look
from webapp.tests.factories.results import finish_run
from webapp.tests.factories.runs import first_look_run


@pytest.fixture
def target(db: None) -> Target:
    first_look()
    return storage1_scratch(a_host("storage1"))


def test_it_shows_a_plan_without_any_usable_target(operator: Client) -> None:
    first_look()
    page = operator.get("/plans/first-look/").content.decode()
    assert "No target is usable now" in page
    assert "Preview" not in page


def test_it_shows_the_note_as_safe_html_with_its_markdown(operator: Client) -> None:
    first_look(msgspec.structs.replace(FIRST_LOOK, note="**Destroys all data**, see `layout`. <script>x</script>"))
    page = operator.get("/plans/first-look/").content.decode()
    assert "<p><strong>Destroys all data</strong>, see <code>layout</code>. &lt;script&gt;x&lt;/script&gt;</p>" in page


def test_the_note_is_folded_unless_the_plan_overwrites_drives(operator: Client) -> None:
    def note_of(document: PlanDocument) -> str:
        first_look(msgspec.structs.replace(document, note="Why."))
        page = " ".join(operator.get("/plans/first-look/").content.decode().split())
        return page[: page.index("<summary>Note</summary>")].rpartition("<details")[2]

    assert "open" in note_of(FIRST_LOOK)
    in_directories = tuple(msgspec.structs.replace(each, on=("directory",)) for each in FIRST_LOOK.parts)
    assert "open" not in note_of(msgspec.structs.replace(FIRST_LOOK, parts=in_directories))


def test_it_shows_an_older_version_and_refuses_an_unknown_one(operator: Client, target: Target) -> None:
    first_look()
    assert "version 1," in operator.get("/plans/first-look/?version=1").content.decode()
    assert "version 2," in operator.get("/plans/first-look/").content.decode()
    for unknown in ("3", "9" * 12, "1" * 5000, "²"):
        assert operator.get("/plans/first-look/", {"version": unknown}).status_code == 404


def test_it_previews_trials_bytes_and_the_job_of_the_selected_trial(operator: Client, target: Target) -> None:
    page = operator.get(f"/plans/first-look/?target={target.id}&trial=31").content.decode()
    assert 'id="cost-trials">36</span>' in page
    assert 'id="job-title">#31 ' in page
    assert "filename=sweetspot." in page
    assert "Start 36 trials" in page
    assert "For a host without earlier runs, the estimate assumes" in page
    assert "26–36 of 36" in page


def test_it_asks_for_the_serial_of_a_drive_that_would_be_overwritten(operator: Client, target: Target) -> None:
    drive = storage1_drive(target.host)
    page = operator.get(f"/plans/first-look/?target={drive.id}").content.decode()
    assert "type its serial: <code>S64GNE0R800123</code>" in page
    assert "This run destroys data" in page
    assert "Overwrite storage1/nvme0 and start" in page


def test_it_warns_about_targets_whose_reads_may_not_come_from_a_drive(operator: Client, target: Target) -> None:
    first_look()
    Target.objects.filter(pk=target.pk).update(warnings=["/mnt/x is on tmpfs, which is memory and not a drive."])
    page = operator.get(f"/plans/first-look/?target={target.id}").content.decode()
    assert f"{target}: /mnt/x is on tmpfs, which is memory and not a drive." in page


def test_it_offers_a_viewer_no_start(viewer: Client, target: Target) -> None:
    page = viewer.get(f"/plans/first-look/?target={target.id}").content.decode()
    assert "Starting requires the operator role" in page
    assert "/start/" not in page


def test_it_starts_a_run_of_the_version_that_was_shown(operator: Client, target: Target) -> None:
    first_look()
    response = operator.post("/plans/first-look/start/", {"version": "1", "target": str(target.id), "note": "first"})
    run = Run.objects.get()
    assert response["Location"] == f"/runs/{run.number}/"
    assert (run.version.number, run.note, list(run.targets.all())) == (1, "first", [target])


@pytest.mark.parametrize("data", [{}, {"target": "nonsense"}, {"target": "00000000-0000-0000-0000-000000000000"}])
def test_it_starts_nothing_without_a_usable_target(operator: Client, target: Target, data: dict[str, str]) -> None:
    operator.post("/plans/first-look/start/", {"version": "1", **data})
    assert not Run.objects.exists()
    assert "Choose at least one target" in operator.get("/plans/first-look/").content.decode()


@pytest.mark.parametrize(("serial", "started"), [("S64GNE0R800123", True), ("S64GNE0R800124", False), ("", False)])
def test_it_starts_a_destructive_run_only_with_the_serial_typed(
    operator: Client, target: Target, serial: str, started: bool
) -> None:
    drive = storage1_drive(target.host)
    data = {"version": "1", "target": str(drive.id), "serial": serial}
    response = operator.post("/plans/first-look/start/", data, follow=True)
    assert Run.objects.exists() is started
    assert ("Not started" in response.content.decode()) is not started


def test_it_runs_the_order_that_was_shown(operator: Client, target: Target) -> None:
    page = operator.get(f"/plans/first-look/?target={target.id}&seed=77").content.decode()
    first = re.search(r"#1 ([^<]+)</span>", page)
    assert first is not None
    operator.post("/plans/first-look/start/", {"version": "1", "target": str(target.id), "seed": "77"})
    run = Run.objects.get()
    assert run.seed == 77
    assert point_words.in_words(run.trials.get(index=0).point) == first.group(1)


def test_a_level_that_could_be_of_any_factor_is_named_with_its_own() -> None:
    point = {"block_size": 4096, "numjobs": 1, "read_ahead_kb": "128", "scheduler": "none"}
    assert point_words.in_words(point, point) == "4 KiB · 1 job · Read-ahead 128 KiB · I/O scheduler none"


def test_each_start_without_a_seed_draws_a_new_one(operator: Client, target: Target) -> None:
    seeds = {
        re.search(
            r'name="seed" value="(\d+)"', operator.get(f"/plans/first-look/?target={target.id}").content.decode()
        )[1]  # type: ignore[index]
        for _ in range(3)
    }
    assert len(seeds) == 3


def test_a_refused_start_keeps_the_page_unchanged(operator: Client, target: Target) -> None:
    drive = storage1_drive(target.host)
    data = {"version": "1", "target": str(drive.id), "note": "before the update", "seed": "5"}
    page = operator.post("/plans/first-look/start/", data, follow=True).content.decode()
    assert 'value="before the update"' in page
    assert "in the order of seed 5" in page


def test_it_starts_no_plan_that_was_deleted(operator: Client, target: Target) -> None:
    Plan.objects.update(deleted_at=timezone.now())
    page = operator.get(f"/plans/first-look/?target={target.id}").content.decode()
    assert "A deleted plan cannot be started" in page
    assert operator.post("/plans/first-look/start/", {"version": "1", "target": str(target.id)}).status_code == 404
    assert not Run.objects.exists()


def test_it_shows_the_duration_of_earlier_runs(operator: Client, target: Target) -> None:
    finish_run(first_look_run(PlanVersion.objects.get(), [target]))
    page = operator.get(f"/plans/first-look/?target={target.id}").content.decode()
    assert "the times between trials and for prefill in at least 1 earlier run on each host" in page
    assert "expected, from the nearest earlier results of this target for such writes" in page
    other = storage1_scratch(target.host, "scratch2", model=target.model)
    page = operator.get(f"/plans/first-look/?target={other.id}").content.decode()
    assert "from the nearest earlier results of drives of this model" in page
    other.model = "another"
    other.save()
    page = operator.get(f"/plans/first-look/?target={other.id}").content.decode()
    assert "expected to be written" not in page
    assert "written at most" in " ".join(page.split())
    Result.objects.update(invalid=True)
    assert "are expected" not in operator.get(f"/plans/first-look/?target={target.id}").content.decode()
    finish_run(first_look_run(PlanVersion.objects.get(), [target]))
    page = operator.get(f"/plans/first-look/?target={target.id}").content.decode()
    assert "the times between trials and for prefill in at least 2 earlier runs on each host" in page


def test_a_plan_opened_again_has_the_targets_of_its_last_run(operator: Client, target: Target) -> None:
    assert "trials</button>" not in operator.get("/plans/first-look/?version=1&chosen=1").content.decode()
    run = first_look_run(PlanVersion.objects.get(), [target])
    page = operator.get("/plans/first-look/").content.decode()
    assert f'<a href="/runs/{run.number}/">run {run.number}</a>, the last run of this plan, are chosen.' in page
    assert "trials</button>" in page
    assert "are chosen" in operator.get("/plans/first-look/?version=1").content.decode()
    assert "are chosen" not in operator.get("/plans/first-look/?version=1&chosen=1").content.decode()
    Target.objects.update(present=False)
    assert "are chosen" not in operator.get("/plans/first-look/").content.decode()


def test_a_plan_that_never_ran_has_a_target_on_which_it_can_start(operator: Client, target: Target) -> None:
    silent = storage1_scratch(a_host("silent", last_seen_at=timezone.now() - timedelta(hours=1)))
    other = storage1_scratch(target.host, "other")
    first_look(FIRST_LOOK, "again")
    first_look_run(PlanVersion.objects.get(plan__slug="first-look"), [other])
    first_look_run(PlanVersion.objects.get(plan__slug="first-look"), [silent])
    page = operator.get("/plans/again/")
    assert page.context["fit"] == [other]  # measured later than the first target
    assert "plan-start" in page.content.decode()
    page = operator.get(f"/plans/again/?version=1&chosen=1&target={silent.id}")
    assert page.context["instead"] == [(other, f"?version=1&chosen=1&target={other.id}#where")]
    assert operator.get("/plans/again/?version=1&chosen=1").context["fit"] == []


def test_no_drive_is_proposed_that_the_plan_would_overwrite(operator: Client, target: Target) -> None:
    drive = storage1_drive(target.host)
    parts = (Part(name="main", on=("block",), factors={"pattern": "write", "size": "1M", "runtime": "1s"}),)
    first_look(PlanDocument(title="Overwrite", parts=parts, repeats=1), "overwrite")
    page = operator.get("/plans/overwrite/")
    assert page.context["fit"] == []
    assert reasons(page.context["unfit"]).keys() == {str(drive), str(target)}
    assert "plan-start" not in page.content.decode()


def reasons(unfit: Iterable[Unfit]) -> dict[str, str]:
    return {str(each.target): each.reason for each in unfit}


def test_a_target_of_a_silent_host_is_left_out_and_the_others_start(operator: Client, target: Target) -> None:
    silent = storage1_scratch(a_host("silent", last_seen_at=timezone.now() - timedelta(hours=1)))
    query = f"version=1&target={target.id}&target={silent.id}"
    page = operator.get(f"/plans/first-look/?{query}")
    assert reasons(page.context["unfit"]).keys() == {str(silent)}
    assert page.context["fit"] == [target]
    assert page.context["unfit"][0].without == f"?version=1&target={target.id}#where"
    started = re.search(
        r'<form class="card-footer" method="post" action="/plans/first-look/start/">.*?</form>',
        page.content.decode(),
        re.DOTALL,
    )
    assert started is not None
    assert re.findall(r'name="target" value="([^"]+)"', started[0]) == [str(target.id)]


def test_a_target_of_another_kind_is_left_out_with_the_reason(operator: Client, target: Target) -> None:
    drive = storage1_drive(target.host)
    parts = (Part(name="main", on=("directory",), factors={"pattern": "read", "size": "1M", "runtime": "1s"}),)
    first_look(PlanDocument(title="Files", parts=parts, repeats=1), "files")
    page = operator.get(f"/plans/files/?target={drive.id}")
    assert "runs on directories only" in reasons(page.context["unfit"])[str(drive)]
    assert "/plans/files/start/" not in page.content.decode()


def test_a_target_without_the_space_is_left_out_with_the_size_that_fits(operator: Client, target: Target) -> None:
    small = storage1_scratch(target.host, "small", size_bytes=2**20)
    page = operator.get(f"/plans/first-look/?target={target.id}&target={small.id}")
    assert reasons(page.context["unfit"]).keys() == {str(small)}
    assert page.context["fitting_bytes"]
    assert "Start 36 trials on storage1/scratch" in re.sub(r"\s+", " ", page.content.decode())


def test_a_problem_of_the_plan_is_no_problem_of_a_target(operator: Client, target: Target) -> None:
    parts = (Part(name="main", factors={"pattern": "read", "size": "1M", "runtime": "1s", "at_once": "2"}),)
    first_look(PlanDocument(title="Together", parts=parts, repeats=1), "together")
    assert reasons(operator.get(f"/plans/together/?target={target.id}").context["unfit"]) == {}
    parts = (Part(name="main", factors={"pattern": "read", "colour": "red"}),)
    first_look(PlanDocument(title="Wrong", parts=parts, repeats=1), "wrong")
    assert reasons(operator.get(f"/plans/wrong/?target={target.id}").context["unfit"]) == {}


def test_a_plan_opened_again_chooses_only_targets_on_which_it_can_start(operator: Client, target: Target) -> None:
    silent = storage1_scratch(a_host("silent"))
    first_look_run(PlanVersion.objects.get(), [target, silent])
    Host.objects.filter(pk=silent.host_id).update(last_seen_at=timezone.now() - timedelta(hours=1))
    page = operator.get("/plans/first-look/")
    assert page.context["chosen"] == {target.id}
    assert reasons(page.context["unfit"]).keys() == {str(silent)}
    assert page.context["unfit"][0].without == ""
    assert "Start 36 trials" in page.content.decode()


def test_the_bound_of_writes_is_a_multiple_of_the_size_of_a_drive(operator: Client, target: Target) -> None:
    drive = storage1_drive(target.host, size_bytes=2**34)
    shown = operator.get(f"/plans/first-look/?target={drive.id}&target={target.id}").context["shown"]
    bounds = {bound.target: bound for bound in shown.preview.write_bounds}
    assert bounds.keys() == {str(drive), str(target)}
    assert bounds[str(drive)].times_size == bounds[str(drive)].bytes // 2**34
    assert bounds[str(target)].times_size == 0


def test_it_previews_every_stream_of_targets_at_once_and_what_they_share(operator: Client, target: Target) -> None:
    drives = [storage1_drive(target.host, slug=slug, lock_keys=["disk"]) for slug in ("p2", "p1")]
    parts = (Part(name="main", factors={"pattern": "read", "at_once": "2", "size": "1M", "runtime": "1s"}),)
    first_look(PlanDocument(title="Together", parts=parts, repeats=1), "together")
    query = "&".join(f"target={drive.id}" for drive in drives)
    page = operator.get(f"/plans/together/?{query}").content.decode()
    assert "storage1/p2 + p1" in page or "storage1/p1 + p2" in page
    assert "; stream 1 of 2, on storage1/p" in page
    assert "; stream 2 of 2, on storage1/p" in page
    assert "share a drive, so they share its throughput." in page
    page = operator.get(f"/plans/together/?target={drives[0].id}").content.decode()
    assert "2 targets at once are more than the 1 block device that is chosen on storage1" in page


def test_the_table_of_factors_has_a_group_for_each_stream(operator: Client, db: None) -> None:
    reader = PartStream(name="reader", factors={"pattern": "randread", "iodepth": "32"})
    writer = PartStream(name="writer", factors={"pattern": "randwrite", "iodepth": "8"})
    parts = (
        Part(name="main", factors={"streams": "together", "size": "1M", "runtime": "1s"}, streams=(reader, writer)),
    )
    first_look(PlanDocument(title="Mixed", parts=parts, repeats=1), "mixed")
    page = operator.get("/plans/mixed/").content.decode()
    groups = re.findall(r'scope="rowgroup" colspan="2">([^<]+)<', page)
    assert groups == ["main", "main, stream reader", "main, stream writer"]
    reader_rows = page.partition("main, stream reader")[2].partition("main, stream writer")[0]
    assert re.findall(r"<code>([^<]+)</code>", reader_rows) == ["randread", "32"]
