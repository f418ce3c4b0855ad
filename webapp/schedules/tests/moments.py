"""Moments and windows that tests of schedules share."""

from datetime import UTC, datetime, time

from webapp.schedules.services import Window

NOON = datetime(2026, 3, 10, 12, tzinfo=UTC)  # 13:00 in Berlin
DUE = datetime(2026, 3, 10, 21, tzinfo=UTC)  # 22:00 in Berlin
NIGHT = Window(days=tuple(range(7)), opens=time(22), closes=time(6))
