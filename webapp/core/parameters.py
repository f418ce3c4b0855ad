"""Values of parameters in a request. A wrong value is a Refusal with status 422, on pages and in the API."""

from datetime import UTC, datetime
from uuid import UUID

from webapp.core.errors import Refusal

MAX_ID = 2**63 - 1  # PostgreSQL's bigint
MAX_DIGITS = 19
FIRST_YEAR, LAST_YEAR = 1970, 9000  # of a moment; far enough from Python's limits to add time and change the zone


def read_number(name: str, text: str, *, low: int = 0, high: int = MAX_ID) -> int:
    """A whole number of ASCII digits within the limits. Raises Refusal value_refused."""
    if text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS and low <= int(text) <= high:
        return int(text)
    raise Refusal("value_refused", f"{name}: write a whole number from {low} to {high}.")


def read_moment(name: str, text: str) -> datetime:
    """A time in ISO 8601 with a time zone, in UTC. Raises Refusal value_refused."""
    try:
        moment = datetime.fromisoformat(text)
        if moment.tzinfo and FIRST_YEAR <= moment.year <= LAST_YEAR:
            return moment.astimezone(UTC)
    except ValueError:
        pass
    raise Refusal("value_refused", f"{name}: write a time with its zone, for example 2026-02-28T14:00:00+00:00.")


def uuid_or_none(text: str) -> UUID | None:
    """None for a text that is no UUID."""
    try:
        return UUID(text)
    except ValueError:
        return None
