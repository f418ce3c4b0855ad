"""What follows from readings of drives; every number here is worked out by hand beside it."""

from typing import Any

import pytest
from django.test import Client

from webapp.results.models import DriveReading, StreamRun, known
from webapp.results.wear import BACKWARDS, ONCE, SILENT, TOO_COARSE, DriveWear, wear_of, wear_of_trial
from webapp.runs.models import Attempt, FurtherTarget, Trial
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.results import START, Lab

pytestmark = pytest.mark.django_db
UNIT = 512_000  # of NVMe's Data Units Written


@pytest.fixture
def lab() -> Lab:
    return Lab(a_drive(a_host("a"), "nvme0"))


def attempt(lab: Lab, iops: float = 1000.0, direction: str = "write") -> Attempt:
    (result,) = lab.measure(iops, direction=direction)
    return known(result.stream_run).attempt


def read(at: Attempt, moment: str, kernel: int | None = None, **told: Any) -> DriveReading:
    fields = {"device": "nvme0n1", "drive": "eui.1", "serial": "S1", "model": "MZ", "boot_id": "b1"}
    return DriveReading.objects.create(
        attempt=at, at=START, moment=moment, kernel_written_bytes=kernel, **(fields | told)
    )


def counts(units: int, media: int | None = None, percent: int | None = None) -> dict[str, int | None]:
    return {
        "host_written_bytes": units * UNIT, "host_unit_bytes": UNIT, "media_written_bytes": media,
        "media_unit_bytes": None if media is None else 1, "percent_used": percent,
    }  # fmt: skip


def only(lab: Lab) -> DriveWear:
    (found,) = wear_of(lab.run)
    return found


def test_it_divides_media_bytes_by_host_bytes_within_the_bounds_of_their_steps(lab: Lab) -> None:
    first, second = attempt(lab), attempt(lab)
    read(first, "before", 0, **counts(1000, 10**12, 3))
    read(first, "after", 100 * UNIT, **counts(1100, 10**12 + 150 * UNIT, 3))
    read(second, "after", 200 * UNIT, **counts(1200, 10**12 + 300 * UNIT, 5))
    found = only(lab)
    assert (found.host_bytes.count, found.host_bytes.step) == (200 * UNIT, UNIT)
    assert (found.media_bytes.count, found.media_bytes.step) == (300 * UNIT, 1)
    assert found.amplification.ratio == 1.5
    assert (round(found.amplification.low, 4), round(found.amplification.high, 4)) == (
        1.4925,
        1.5075,
    )  # 300/201, 300/199
    assert (found.kernel_bytes, found.kernel_at_least) == (200 * UNIT, False)
    assert found.engine_bytes == 2 * 3000 * 4096
    assert (found.percent_before, found.percent_after, found.percent_used.count) == (3, 5, 2)
    assert (found.targets, found.together) == (("a/nvme0",), 1)


@pytest.mark.parametrize(
    ("units", "media", "host_known", "why"),
    [
        (1, 10**9, False, TOO_COARSE),  # one step may be none
        (9, 20 * UNIT, True, TOO_COARSE),  # 9 ± 1 leaves the ratio open by 12 %
        (12, 20 * UNIT, True, ""),  # by 9.1 %
        (100, 0, True, TOO_COARSE),
    ],
)
def test_it_shows_no_number_smaller_than_the_counters_step(
    lab: Lab, units: int, media: int, host_known: bool, why: str
) -> None:
    at = attempt(lab)
    read(at, "before", 0, **counts(50, 10**12, 3))
    read(at, "after", 4096, **counts(50 + units, 10**12 + media, 4))
    found = only(lab)
    assert (found.host_bytes.count is not None) == host_known
    assert found.host_bytes.why == ("" if host_known else TOO_COARSE)
    assert (found.amplification.ratio is None, found.amplification.why) == (bool(why), why)
    assert found.percent_used.why == TOO_COARSE  # from 3 to 4 % may be a hair


def test_it_uses_the_ratio_of_pages_if_their_size_is_unknown(lab: Lab) -> None:
    at = attempt(lab)
    read(at, "before", 0, host_pages=10_000, media_pages=20_000)
    read(at, "after", 1, host_pages=11_000, media_pages=23_000)
    found = only(lab)
    assert found.amplification.ratio == 3.0
    assert found.amplification.high == 3002 / 999
    assert (found.host_bytes.why, found.media_bytes.why) == (SILENT, SILENT)


def test_a_drive_without_counters_is_reported(lab: Lab) -> None:
    at = attempt(lab)
    read(at, "before", 4096)
    read(at, "after", 12288)
    found = only(lab)
    assert (found.kernel_bytes, found.host_bytes.why, found.amplification.why) == (8192, SILENT, SILENT)
    assert (found.percent_before, found.percent_used.why) == (None, SILENT)


def test_it_was_read_once_so_far(lab: Lab) -> None:
    read(attempt(lab), "before", 4096, **counts(5))
    found = only(lab)
    assert (found.kernel_bytes, found.host_bytes.why, found.engine_bytes) == (None, ONCE, 0)


def test_a_counter_that_decreased_or_changed_its_unit_is_not_used(lab: Lab) -> None:
    at, other = attempt(lab), attempt(lab)
    read(at, "before", 0, **counts(50, 100, 7))
    read(at, "after", 0, **counts(40, 200, 5))
    for moment, unit in (("before", 512), ("after", 2**25)):
        read(other, moment, 0, drive="eui.2", device="sdb", host_written_bytes=2**30, host_unit_bytes=unit)
    back, changed = wear_of(lab.run)
    assert (back.host_bytes.why, back.percent_used.why) == (BACKWARDS, BACKWARDS)
    assert back.amplification.ratio is None
    assert "different units" in changed.host_bytes.why


def test_the_kernels_count_is_a_lower_bound_after_a_restart(lab: Lab) -> None:
    at, later = attempt(lab), attempt(lab)
    read(at, "before", 1000)
    read(at, "after", 5000)
    read(later, "before", 100, boot_id="b2")
    read(later, "after", 300, boot_id="b2")
    found = only(lab)
    assert (found.kernel_bytes, found.kernel_at_least) == (4300, True)


def test_fios_bytes_are_of_all_drives_that_a_trial_wrote_to(lab: Lab) -> None:
    both, one = attempt(lab), attempt(lab)
    for drive in ("eui.1", "eui.2"):
        read(both, "before", 0, drive=drive)
        read(both, "after", 10, drive=drive)
    read(one, "after", 20)
    first, second = wear_of(lab.run)
    assert (first.engine_bytes, second.engine_bytes) == (2 * 3000 * 4096, 3000 * 4096)
    assert (first.together, second.together) == (2, 2)


def test_a_trials_bytes_are_counted_from_the_reading_before_it(
    lab: Lab, client: Client, django_user_model: Any
) -> None:
    """The second trial was not preceded by a reading of its own: nothing was written in between."""
    first, second = attempt(lab), attempt(lab)
    read(first, "before", 0, **counts(1000, 10**12, 3))
    read(first, "after", 50 * UNIT, **counts(1050, 10**12 + 50 * UNIT, 3))
    read(second, "before", 0, drive="eui.2", device="nvme1n1")
    read(second, "after", 250 * UNIT, **counts(1250, 10**12 + 350 * UNIT, 3))
    read(second, "after", 8, drive="eui.2", device="nvme1n1")
    assert first.trial
    assert second.trial
    (alone,) = wear_of_trial(first.trial)
    assert (alone.kernel_bytes, alone.host_bytes.count, alone.engine_bytes) == (50 * UNIT, 50 * UNIT, 3000 * 4096)
    one, other = wear_of_trial(second.trial)
    assert (one.kernel_bytes, one.host_bytes.count, one.media_bytes.count) == (200 * UNIT, 200 * UNIT, 300 * UNIT)
    assert (one.amplification.ratio, one.engine_bytes, one.together) == (1.5, 3000 * 4096, 2)
    assert (other.kernel_bytes, other.host_bytes.why, one.targets) == (8, SILENT, ("a/nvme0",))
    again = Attempt.objects.create(
        kind="trial", run=lab.run, trial=second.trial, host=second.host, number=2, state="failed", lease_until=START
    )
    read(again, "after", 260 * UNIT, **counts(1260, 10**12 + 360 * UNIT, 3))
    (last,) = wear_of_trial(second.trial)
    assert (last.kernel_bytes, last.engine_bytes, last.amplification.why) == (10 * UNIT, 0, TOO_COARSE)
    silent = attempt(lab)
    assert silent.trial
    assert wear_of_trial(silent.trial) == []
    client.force_login(django_user_model.objects.create_user("vera", role="viewer"))
    page = client.get(f"/runs/1/trials/{first.trial.number}/").content.decode()
    assert "25.6 MB ± 512 kB" in page
    assert "By this trial" in page
    assert "By this run" in client.get("/runs/1/").content.decode()
    assert "Written to drives" not in client.get(f"/runs/1/trials/{silent.trial.number}/").content.decode()


def test_the_page_and_the_api_say_so(lab: Lab, client: Client, django_user_model: Any) -> None:
    at = attempt(lab)
    read(at, "before", 0, **counts(1000, 10**12, 3))
    read(at, "after", 200 * UNIT, **counts(1200, 10**12 + 300 * UNIT, 3))
    client.force_login(django_user_model.objects.create_user("vera", role="viewer"))
    page = client.get("/runs/1/").content.decode()
    for words in (
        "102 MB ± 512 kB",
        "×1.50 (×1.49 to ×1.51)",
        "3 % → 3 %",
        "below the counter&#x27;s resolution (1 %)",
    ):
        assert words in page
    assert "not tested on real hardware" in client.get("/runs/1/wear/").content.decode()
    (told,) = client.get("/api/v1/runs/1/wear").json()
    assert told["amplification"]["ratio"] == 1.5
    assert told["percent_used"] == {"count": None, "step": 1, "why": TOO_COARSE}


def test_a_drive_is_listed_with_the_targets_on_it(lab: Lab) -> None:
    lab.target.lock_keys = ["eui.1"]
    lab.target.save()
    second = a_drive(lab.target.host, "nvme1", lock_keys=["eui.2"])
    (result,) = lab.measure(1000.0, direction="write", at_once=2)
    FurtherTarget.objects.create(trial=known(result.trial), stream=1, target=second)
    for drive in ("eui.1", "eui.2"):
        for moment, kernel in (("before", 0), ("after", 9)):
            read(known(result.stream_run).attempt, moment, kernel, drive=drive, device=drive)
    assert [(each.targets, each.together) for each in wear_of(lab.run)] == [(("a/nvme0",), 2), (("a/nvme1",), 2)]


def test_the_bytes_of_a_named_stream_are_those_of_the_drives_of_its_own_pool(lab: Lab) -> None:
    lab.target.lock_keys = ["eui.1", "eui.2"]
    lab.target.save()
    second = a_drive(lab.target.host, "nvme1", lock_keys=["eui.3"])
    (first,) = lab.measure(1000.0, direction="write")
    trial = known(first.trial)
    Trial.objects.filter(pk=trial.pk).update(point=trial.point | {"streams": "mirror + log", "streams_on": "each"})
    FurtherTarget.objects.create(trial=trial, stream=1, target=second)
    log = StreamRun.objects.create(attempt=known(first.stream_run).attempt, stream=1, command=[], started_at=START)
    first.pk, first.stream_run, first.target, first.bytes = None, log, second, 7
    first.save()
    for drive in ("eui.1", "eui.2", "eui.3"):
        for moment in ("before", "after"):
            read(log.attempt, moment, 0, drive=drive, device=drive)
    of_mirror = (3000 * 4096, 2)
    assert [(each.engine_bytes, each.together) for each in wear_of(lab.run)] == [of_mirror, of_mirror, (7, 1)]
