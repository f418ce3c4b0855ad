"""The worker's log: one line per event on stderr, with its attempt. Lines from level INFO also go to the server.

The newest `QUEUE_LINES` lines for the server are queued in memory; older ones are dropped and counted, and the count
is sent. Secrets registered with `hide` are removed before a line is queued.
"""

import contextvars
import json
import logging
import os
import secrets
import sys
import threading
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from urllib.parse import urlsplit

from worker.contract.reports import LogLevel, LogLine, WorkerLog

QUEUE_LINES = 1000  # in the queue
REPORT_LINES = 100  # in one report
LINE_CHARACTERS = 2000  # of one line

_attempt: contextvars.ContextVar[str] = contextvars.ContextVar("attempt", default="-")

FORMAT_VARIABLE = "SWEETSPOT_WORKER_LOG_FORMAT"  # "json" for one object a line
FORMAT = "%(asctime)s %(levelname)-7s [%(attempt)s] %(name)s: %(message)s"


@contextmanager
def about(attempt: str) -> Iterator[None]:
    """Log lines written inside carry this attempt id."""
    token = _attempt.set(attempt)
    try:
        yield
    finally:
        _attempt.reset(token)


class _AttemptFilter(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        record.attempt = _attempt.get()
        return True


class _JsonFormatter(logging.Formatter):
    """JSON with at (RFC 3339, UTC), level, logger, message, and if present attempt and trace."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
        }
        if record.attempt != "-":  # type: ignore[attr-defined]
            line["attempt"] = record.attempt  # type: ignore[attr-defined]
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)


_hidden: set[str] = set()


def hide(secret: str) -> None:
    """From now on, replace this text by “…” in every line for the server."""
    if len(secret) >= 8:
        _hidden.add(secret)


def hide_access(*, host_token: str, broker_url: str) -> None:
    """Hide the host's token, and its password and URL for the broker."""
    for secret in (host_token, urlsplit(broker_url).password or "", broker_url):
        hide(secret)


class Shipping(logging.Handler):
    """Queue lines for the server, from any thread. `on_line` is called for each new line."""

    def __init__(self) -> None:
        super().__init__(logging.INFO)
        self.addFilter(_AttemptFilter())
        self.setFormatter(logging.Formatter("%(name)s: %(message)s"))
        self.on_line = threading.Event().set
        self._session = secrets.token_hex(8)
        self._lines: deque[LogLine] = deque()
        self._number = 0
        self._dropped = 0
        self._guard = threading.RLock()  # a signal handler may log while its own thread does

    def emit(self, record: logging.LogRecord) -> None:
        try:
            text = _shippable(self.format(record))
        except (TypeError, ValueError):  # the arguments do not match the message
            self.handleError(record)
            return
        with self._guard:
            self._number += 1
            self._lines.append(_line(self._number, record, text))
            if len(self._lines) > QUEUE_LINES:
                self._lines.popleft()
                self._dropped += 1
        self.on_line()

    @property
    def empty(self) -> bool:
        return not self._lines

    def waiting(self) -> WorkerLog | None:
        """The oldest lines, after a line with the number of dropped ones."""
        with self._guard:
            if not self._lines:
                return None
            lines = [self._lines[index] for index in range(min(REPORT_LINES - 1, len(self._lines)))]
            if self._dropped:
                lines.insert(0, _gap(lines[0], self._dropped))
            return WorkerLog(session=self._session, lines=tuple(lines))

    def confirm(self, sent: WorkerLog) -> None:
        """The server has these lines."""
        last = sent.lines[-1].number
        with self._guard:
            while self._lines and self._lines[0].number <= last:
                self._lines.popleft()
            first = sent.lines[0]
            if first.text.startswith(_GAP):
                self._dropped = max(0, self._dropped - int(first.text[len(_GAP) :].split()[0]))


_GAP = "Dropped because the queue was full: "


def _gap(before: LogLine, dropped: int) -> LogLine:
    """A line about the dropped lines, with the number of the last one."""
    text = f"{_GAP}{dropped} lines. The log on the host has them."
    return LogLine(number=max(0, before.number - 1), at=before.at, level=LogLevel.WARNING, text=text)


def _line(number: int, record: logging.LogRecord, text: str) -> LogLine:
    attempt = getattr(record, "attempt", "-")
    return LogLine(
        number=number,
        at=record.created,
        level=_level(record.levelno),
        text=text,
        attempt="" if attempt == "-" else str(attempt)[:64],
    )


def _level(number: int) -> LogLevel:
    steps = (
        (logging.CRITICAL, LogLevel.CRITICAL),
        (logging.ERROR, LogLevel.ERROR),
        (logging.WARNING, LogLevel.WARNING),
    )
    return next((level for least, level in steps if number >= least), LogLevel.INFO)


def _shippable(text: str) -> str:
    """Remove secrets and invalid characters; keep the end of a long trace, where the error is."""
    for secret in _hidden:
        text = text.replace(secret, "…")
    text = text.encode("utf-8", "replace").decode()
    return text if len(text) <= LINE_CHARACTERS else f"…{text[1 - LINE_CHARACTERS :]}"


def ship() -> Shipping:
    """Queue log lines for the server from now on."""
    shipping = Shipping()
    logging.getLogger().addHandler(shipping)
    return shipping


def set_up(level: str = "INFO") -> None:
    """Log to stderr."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_AttemptFilter())
    as_json = os.environ.get(FORMAT_VARIABLE, "").lower() == "json"
    handler.setFormatter(_JsonFormatter() if as_json else logging.Formatter(FORMAT))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(True)
    logging.getLogger("urllib3").setLevel(logging.WARNING)
    # Celery logs every order twice; the worker's own lines say more.
    for name in ("celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(name).setLevel(logging.WARNING)
