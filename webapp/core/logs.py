"""Log lines with their context (host, run, attempt), as plain text or JSON (SWEETSPOT_LOG_FORMAT)."""

import json
import logging
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from datetime import UTC, datetime

_about: ContextVar[tuple[tuple[str, str], ...]] = ContextVar("about", default=())


@contextmanager
def about(**subjects: object) -> Iterator[None]:
    """Add fields to the log lines written inside, e.g. attempt="…", host="storage1"; None and "" are left out."""
    named = {name: str(value) for name, value in subjects.items() if value is not None and value != ""}
    token = _about.set(tuple({**dict(_about.get()), **named}.items()))
    try:
        yield
    finally:
        _about.reset(token)


def bind(**subjects: object) -> None:
    """Add fields to the rest of the innermost `about`, for values that become known inside it."""
    _about.set(tuple({**dict(_about.get()), **{name: str(value) for name, value in subjects.items()}}.items()))


class AboutFilter(logging.Filter):
    """Adds the context to the record, as a dict for JSON and as text for people."""

    def filter(self, record: logging.LogRecord) -> bool:
        record.subjects = dict(_about.get())
        record.about = "".join(f" {name}={value}" for name, value in _about.get())
        return True


# A line of a host or of an unknown client must not look like several lines, nor control a terminal.
_CONTROL = {code: repr(chr(code))[1:-1] for code in (*range(32), 127) if chr(code) != "\t"}


class PlainFormatter(logging.Formatter):
    """One line for people, without control characters; the traceback follows, if any."""

    def formatMessage(self, record: logging.LogRecord) -> str:  # noqa: N802 - logging's name
        return super().formatMessage(record).translate(_CONTROL)


class JsonFormatter(logging.Formatter):
    """One JSON object a line: at (RFC 3339, UTC), level, logger, message, context, and the traceback if any."""

    def format(self, record: logging.LogRecord) -> str:
        line = {
            "at": datetime.fromtimestamp(record.created, tz=UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            **getattr(record, "subjects", {}),
        }
        if record.exc_info:
            line["trace"] = self.formatException(record.exc_info)
        return json.dumps(line, ensure_ascii=False)
