"""Data that the pages of hosts send to their scripts; `frontend/src/payloads/hosts.ts` has the same types."""

from webapp.screens.payloads import Payload


class Enrolment(Payload, frozen=True, kw_only=True):
    """The state of an enrolment command: waiting, expired, enrolled (host created), heard (worker registered)."""

    state: str
    host: str  # its name, "" while waiting
    url: str  # address of the host's page
    seconds_left: float


class LogTailLine(Payload, frozen=True, kw_only=True):
    """A line of a worker's log; `about` and `url` name its trial or run, "" if it has none."""

    at: str  # ISO 8601, UTC
    level: str
    text: str
    about: str
    url: str


class LogTail(Payload, frozen=True, kw_only=True):
    """Lines in order; send `last` to get the following lines."""

    lines: tuple[LogTailLine, ...]
    last: int
