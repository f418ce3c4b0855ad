"""Errors caused by the user, which are shown as they are; names and values that a request gives. Any other exception is
our bug."""

from collections.abc import Collection, Iterable
from datetime import UTC, datetime
from difflib import get_close_matches
from uuid import UUID


class Refusal(Exception):
    """`code` is for machines, the text says what is wrong, where, and what to do."""

    def __init__(self, code: str, message: str) -> None:
        super().__init__(message)
        self.code = code
        self.message = message


class NotFound(Refusal):
    """The path, a parameter or the body names an object that does not exist. The API answers 404."""


# Names of objects and parameters: a free one for an address, and the valid ones beside an unknown one.

MAX_LENGTH = 100  # of a name to compare: the comparison takes memory and time by its length


def nearest(unknown: str, known: Iterable[str], *, cutoff: float = 0.6) -> str:
    """The most similar known name, or ""."""
    matches = get_close_matches(unknown, list(known), n=1, cutoff=cutoff) if len(unknown) <= MAX_LENGTH else []
    return matches[0] if matches else ""


def instead(unknown: str, known: Collection[str]) -> str:
    """What to use instead of an unknown name: `Did you mean plan? Use plan, state.`"""
    if not known:
        return "It takes none."
    near = nearest(unknown, known)
    return f"{f'Did you mean {near}? ' if near else ''}Use {', '.join(sorted(known))}."


def free_slug(wanted: str, taken: Collection[str]) -> str:
    """The slug, with a number appended if it is taken."""
    numbered = (f"{wanted}-{number}" for number in range(2, len(taken) + 3))
    return next(slug for slug in (wanted, *numbered) if slug not in taken)


# Values of parameters in a request. A wrong value is a Refusal with status 422, on pages and in the API.

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
