"""Schedules that overwrite drives, for tests."""

from datetime import timedelta

import msgspec

from webapp.core.models import User
from webapp.hosts.models import Target
from webapp.plans.document import Part
from webapp.plans.models import PlanVersion
from webapp.schedules.arming import arm_schedule
from webapp.schedules.models import Schedule
from webapp.schedules.services import switch_on
from webapp.schedules.tests.moments import NOON
from webapp.tests.factories.plans import DOCUMENT, a_version
from webapp.tests.factories.schedules import a_schedule


def a_writing_version() -> PlanVersion:
    parts = (Part(name="fill", factors={"pattern": "randwrite", "block_size": "4k"}),)
    return a_version(msgspec.structs.replace(DOCUMENT, parts=parts))


def a_writing_schedule(drive: Target, by: User) -> Schedule:
    return a_schedule(by, name="fill", version=a_writing_version(), targets=[drive])


def armed(schedule: Schedule, drive: Target, by: User, days: int = 30) -> None:
    until = NOON + timedelta(days=days)
    arm_schedule(schedule=schedule, serials=[drive.arming_serial], until=until, by=by)
    switch_on(schedule=schedule, by=by)
