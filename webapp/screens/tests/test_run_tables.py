"""The tables of a run, one for each pattern, and what a cancelled run says about itself."""

import re

from django.test import Client

from webapp.results.models import Result
from webapp.runs.models import Run, TrialState
from webapp.tests.factories.hosts import a_host, storage1_drive, storage1_scratch
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import Lab, finish_trial
from webapp.tests.factories.runs import first_look_run

BLOCKS, THREADS = (512, 4096, 2**20), (1, 10, 40)


def bm_flash(client: Client) -> str:
    """The page of a run of two patterns, three block sizes and three numbers of threads."""
    lab = Lab(storage1_scratch(a_host("storage1")))
    for pattern in ("randwrite", "randread"):
        for block in BLOCKS:
            for threads in THREADS:
                lab.measure(1000.0 * threads, 4000.0 * threads, pattern=pattern, block_size=block, numjobs=threads)
    Run.objects.update(trial_count=lab.run.trials.count())
    return client.get("/runs/1/").content.decode()


def test_a_run_states_the_conditions_that_explore_states(viewer: Client) -> None:
    page = bm_flash(viewer)
    same = viewer.get("/explore/?run=1&x=numjobs&panel=pattern&series=block_size").context["comparison"].same
    assert same
    assert " · ".join(same) in page


def test_explore_states_as_the_page_of_the_run_which_files_are_written_first(viewer: Client) -> None:
    """Nothing is written first on a block device; the factor stays in the stored point."""
    host = a_host("storage1")
    for number, target in enumerate((storage1_scratch(host), storage1_drive(host)), start=1):
        lab = Lab(target, number=number)
        for depth in (1, 32):
            lab.measure(1000.0 * depth, iodepth=depth, prefill=True, facts={"target.kind": target.kind})
    for number, is_written in ((1, True), (2, False)):
        same = viewer.get(f"/explore/?run={number}&x=iodepth").context["comparison"].same
        assert ("written first" in same) is is_written
        assert ("written first" in viewer.get(f"/runs/{number}/").content.decode()) is is_written


def test_there_is_one_table_for_each_pattern_with_block_sizes_down_and_threads_across(viewer: Client) -> None:
    page = bm_flash(viewer)
    assert sorted(re.findall(r"<caption>(.*?)</caption>", page)) == ["randread", "randwrite"]
    table = page[page.index("<caption>") : page.index("</table>", page.index("<caption>"))]
    assert re.findall(r'<th scope="row">(.*?)</th>', table) == ["512 B", "4 KiB", "1 MiB"]
    assert re.search(r"Jobs</span> 1</th>.*10</th>.*40</th>", table)


def test_a_cell_is_the_mean_of_its_repeats_and_leads_to_the_first(viewer: Client) -> None:
    assert '<td data-trials="1 2"><a href="/runs/1/trials/1/">2.00k</a></td>' in bm_flash(viewer)


def test_an_invalid_repeat_is_left_out_of_the_mean(viewer: Client) -> None:
    bm_flash(viewer)
    Run.objects.get().trials.filter(index=1).update(invalid_reason="wrong cable")
    assert '<td data-trials="1 2"><a href="/runs/1/trials/1/">1.00k</a></td>' in viewer.get("/runs/1/").content.decode()


def test_a_value_of_0_is_not_in_the_mean_and_its_number_is_stated(viewer: Client) -> None:
    bm_flash(viewer)
    Result.objects.filter(trial__index=1).update(iops=0.0)
    assert ">1.00k (0 in 1 of 2)</a></td>" in viewer.get("/runs/1/").content.decode()


def test_a_run_without_two_combined_numeric_factors_stays_a_list(viewer: Client) -> None:
    first_look_run(first_look(), [storage1_scratch(a_host("storage1"))])
    page = viewer.get("/runs/1/").content.decode()
    assert 'id="run-pivots"' not in page
    assert 'id="run-grid"' in page


def test_a_cancelled_run_says_what_was_measured_before(viewer: Client) -> None:
    run = first_look_run(first_look(), [storage1_scratch(a_host("storage1"))], repeats=1)
    finish_trial(run.trials.get(index=0))
    run.trials.filter(state=TrialState.PLANNED).update(state=TrialState.CANCELLED, reason_code="run_cancelled_before")
    Run.objects.update(state="cancelled", ended_at=run.started_at)
    page = viewer.get("/runs/1/").content.decode()
    assert "1 of 12 trials were measured; 11 did not finish." in page
    assert 'id="run-progress"' not in page  # nothing progresses
    assert "The run was cancelled before this trial started." not in page  # no problem of the trials
    assert re.search(r"1 of 12\s+trials", viewer.get("/runs/").content.decode())
