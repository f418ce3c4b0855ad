"""Telemetry and the kernel log on pages."""

import pytest
from django.test import Client
from django.utils import timezone

from webapp.results.models import KernelLine, Result, Sample, StreamRun
from webapp.runs.models import Trial
from webapp.screens.runs.live import live_run
from webapp.screens.runs.telemetry import Lines, summary
from webapp.tests.factories.hosts import a_host, storage1_scratch
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.results import finish_trial
from webapp.tests.factories.runs import first_look_run

CORES = [["cpu_user", "cpu0"], ["cpu_iowait", "cpu0"], ["cpu_user", "cpu1"], ["cpu_iowait", "cpu1"]]
SENSORS = [*CORES, ["temperature", "sda"], ["power", "server (IPMI)"]]


def measured() -> Trial:
    run = first_look_run(first_look(), [storage1_scratch(a_host("storage1"))], repeats=1)
    trial = run.trials.get(index=0)
    finish_trial(trial)
    StreamRun.objects.filter(attempt__trial=trial).update(sensors=SENSORS, kernel_log_read=True)
    for second, values in enumerate(([10, 80, 30, 0, 31.5, None], [20, 80, 50, 0, None, None])):
        Sample.objects.filter(attempt__trial=trial, offset_ms=1000 * (second + 1)).update(telemetry=values)
    return trial


def trouble(trial: Trial) -> None:
    attempt = trial.attempts.get()
    KernelLine.objects.create(attempt=attempt, sequence=7, at=timezone.now(), level=3, text="ata1: hard resetting link")
    Result.objects.filter(trial=trial).update(kernel_lines=1)


def test_of_many_cores_it_shows_the_mean_and_the_busiest() -> None:
    lines = Lines.of(SENSORS)
    shown = dict(zip([sensor.name for sensor in lines.sensors], lines.values([10, 80, 30, 0, 31.5, None]), strict=True))
    assert shown == {
        "sda": 31.5,
        "server (IPMI)": None,
        "user, mean of all cores": 20,
        "I/O wait, mean of all cores": 40,
        "busiest core": 30,  # one that only waits is free for others
    }


def test_values_that_do_not_fit_the_sensors_are_not_shown() -> None:
    assert Lines.of(SENSORS).values([1, 2]) == ()
    assert Lines.of(SENSORS).values(None) == ()


@pytest.mark.django_db
def test_the_live_page_names_sensors_once_an_attempt() -> None:
    live = live_run(measured().run)
    assert [sensor.panel for sensor in live.sensors[0].sensors] == ["temperature", "power", "cpu", "cpu", "cpu"]
    told = [sample.telemetry for sample in live.samples]
    assert (31.5, None, 20, 40, 30) in told


@pytest.mark.django_db
def test_a_sensor_that_told_nothing_is_not_summed_up() -> None:
    found = summary(measured())
    assert [(each.kind, each.name, each.mean) for each in found.sensors] == [("temperature", "sda", "31.5 °C")]
    assert [(core.name, core.shares, core.busiest) for core in found.cores] == [
        ("cpu0", ("15.0 %", "80.0 %"), "20.0 %"),
        ("cpu1", ("40.0 %", "0 %"), "50.0 %"),
    ]


def test_a_trial_page_shows_sensors_and_says_that_the_kernel_was_content(operator: Client) -> None:
    trial = measured()
    page = operator.get(f"/runs/{trial.run.number}/trials/1/").content.decode()
    assert "31.5 °C" in page
    assert "not tested on real hardware" in page
    assert "no storage error, reset or timeout" in page
    StreamRun.objects.update(kernel_log_read=False)
    assert "The kernel log was not read" in operator.get(f"/runs/{trial.run.number}/trials/1/").content.decode()


def test_trouble_is_flagged_on_the_trial_in_the_grid_and_in_results(operator: Client) -> None:
    trial = measured()
    pages = (f"/runs/{trial.run.number}/trials/1/", f"/runs/{trial.run.number}/", "/results/")
    assert not any("trouble" in operator.get(page).content.decode() for page in pages)
    KernelLine.objects.create(
        attempt=trial.attempts.get(), sequence=6, at=timezone.now(), level=3, text="ata9: frozen", elsewhere=True
    )
    shown = operator.get(pages[0]).context
    assert ([line.text for line in shown["lines_elsewhere"]], shown["kernel_lines"]) == (["ata9: frozen"], [])
    at_trial, *others = (operator.get(page).content.decode() for page in pages)
    assert "ata9: frozen" in at_trial
    assert not any("trouble" in page for page in (at_trial, *others))
    trouble(trial)
    at_trial, grid, results = (operator.get(page).content.decode() for page in pages)
    assert "ata1: hard resetting link" in at_trial
    assert "ata9: frozen" in at_trial
    assert "1 line</a>" in at_trial
    assert "Storage errors in the kernel log</strong>" in at_trial
    assert "is-troubled" in grid
    assert "Kernel log: 1 line" in grid
    assert "The kernel logged storage errors during 1 of the results shown" in results


def test_the_api_tells_it_all(operator: Client) -> None:
    trial = measured()
    trouble(trial)
    KernelLine.objects.create(
        attempt=trial.attempts.get(), sequence=8, at=timezone.now(), level=3, text="ata9: frozen", elsewhere=True
    )
    detail = operator.get(f"/api/v1/trials/{trial.pk}").json()
    lines = [(line["text"], line["elsewhere"]) for line in detail["kernel_log"]]
    assert lines == [("ata1: hard resetting link", False), ("ata9: frozen", True)]
    assert detail["results"][0]["kernel_lines"] == 1
    series = operator.get(f"/api/v1/trials/{trial.pk}/samples").json()
    assert series["sensors"][4] == {"kind": "temperature", "name": "sda"}
    assert series["samples"][0]["telemetry"][4] == 31.5
