"""The worker's log: one line an event on stderr, with the attempt it belongs to."""

import contextvars
import logging
import sys
from collections.abc import Iterator
from contextlib import contextmanager

_attempt: contextvars.ContextVar[str] = contextvars.ContextVar("attempt", default="-")

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


def set_up(level: str = "INFO") -> None:
    """Log to stderr; the service manager adds what it likes."""
    handler = logging.StreamHandler(sys.stderr)
    handler.addFilter(_AttemptFilter())
    handler.setFormatter(logging.Formatter(FORMAT))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    logging.captureWarnings(True)
    logging.getLogger("urllib3").setLevel(logging.WARNING)
    # Celery writes a line for every order it gets and one for every order it is done with; ours say more.
    for name in ("celery.worker.strategy", "celery.app.trace"):
        logging.getLogger(name).setLevel(logging.WARNING)
