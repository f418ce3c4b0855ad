"""Arming a schedule that overwrites drives."""

from datetime import timedelta

import pytest
from django.test import Client
from django.utils import timezone

from webapp.schedules.models import Schedule
from webapp.screens.tests.schedule_pages import page_of, posted

SERIAL = "S64GNE0R800123"


def test_one_that_overwrites_says_that_it_will_not_run_until_it_is_armed(
    operator: Client, overwriting: Schedule
) -> None:
    page = page_of(operator, f"/schedules/{overwriting.pk}/")
    assert "so each of them is missed until the schedule is armed" in page
    assert "type its serial" in page
    assert "Nothing was changed: It overwrites drives and is not armed." in posted(operator, overwriting, "on")
    assert "It overwrites drives and is not armed." in page_of(operator, "/schedules/")


def test_arming_names_the_drive_the_person_and_the_end_and_offers_to_switch_on(
    operator: Client, overwriting: Schedule
) -> None:
    until = (timezone.localdate() + timedelta(days=10)).isoformat()
    page = posted(operator, overwriting, "arm", serial=SERIAL, until=until)
    assert f"is armed until the end of {until} (Europe/Berlin). The schedule is still switched off" in page
    assert "by olga until" in page
    assert "The arming covers" in page
    assert "Switch on the armed schedule" in page
    assert "It overwrites drives and is not armed." not in page
    assert "Armed, and not switched on yet." in page_of(operator, "/schedules/")
    assert "is switched on." in posted(operator, overwriting, "on")
    assert "is disarmed" in posted(operator, overwriting, "disarm")
    assert "was not armed" in posted(operator, overwriting, "disarm")


@pytest.mark.parametrize(
    ("serial", "until", "why"),
    [
        ("wrong", "2999-01-01", "Nothing was changed"),
        (SERIAL, "2999-01-01", "within the next 366 days"),
        (SERIAL, "9999-12-31", "choose the last day"),
        (SERIAL, "soon", "choose the last day"),
        (SERIAL, "2001-01-01", "within the next 366 days"),
    ],
)
def test_a_wrong_arming_is_refused(operator: Client, overwriting: Schedule, serial: str, until: str, why: str) -> None:
    response = operator.post(f"/schedules/{overwriting.pk}/arm/", {"serial": serial, "until": until})
    assert response.status_code == 422
    assert why in response.content.decode()
    overwriting.refresh_from_db()
    assert overwriting.armed_until is None


def test_a_wrong_serial_is_said_beside_its_field(operator: Client, overwriting: Schedule) -> None:
    until = (timezone.localdate() + timedelta(days=3)).isoformat()
    response = operator.post(f"/schedules/{overwriting.pk}/arm/", {"serial": "wrong", "until": until})
    page = response.content.decode()
    problem = f'id="schedule-problem-1">This is not the serial of storage9/nvme0. Type {SERIAL}.</div>'
    assert problem in page
    assert 'value="wrong" aria-invalid="true" aria-describedby="schedule-problem-1" autofocus' in page
    assert f'value="{until}"' in page
    assert 'id="until-problem"' not in page
    page = operator.post(f"/schedules/{overwriting.pk}/arm/", {"serial": SERIAL, "until": "soon"}).content.decode()
    assert 'id="until-problem">This date cannot be used' in page
    assert "This is not the serial" not in page


def test_an_arming_that_has_ended_is_said(operator: Client, overwriting: Schedule) -> None:
    Schedule.objects.filter(pk=overwriting.pk).update(
        armed_serials=[SERIAL], armed_until=timezone.now() - timedelta(days=1)
    )
    assert "The arming ended on" in page_of(operator, f"/schedules/{overwriting.pk}/")
