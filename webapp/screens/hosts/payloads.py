"""What the pages of hosts send to their scripts; `frontend/src/payloads/hosts.ts` checks the same shapes."""

from webapp.screens.payloads import Payload


class Enrolment(Payload, frozen=True, kw_only=True):
    """What became of a line to paste: waiting, expired, enrolled (it has a host), heard (its worker is at work)."""

    state: str
    host: str  # its name, "" while waiting
    url: str  # of the host's page
    seconds_left: float


class LogTailLine(Payload, frozen=True, kw_only=True):
    """A line of a worker's log; `about` and `url` lead to the trial or run it belongs to, "" where it has none."""

    at: str  # ISO 8601, UTC
    level: str
    text: str
    about: str
    url: str


class LogTail(Payload, frozen=True, kw_only=True):
    """Lines in the order in which they came; `last` is to be sent back to get what comes after."""

    lines: tuple[LogTailLine, ...]
    last: int
