"""The codes of fio's error messages."""

import re

# Pattern in fio's output -> code of the failure.
_CODES = (
    (
        re.compile(r"Bad option|[Ff]ailed parsing|not a valid|out of range|unrecognized option|job .* dropped"),
        "option_refused",
    ),
    (re.compile(r"engine \S+ not loadable|failed to load engine|io_queue_init|queue_init"), "engine_missing"),
)


def code_of(output: str) -> str:
    return next((code for pattern, code in _CODES if pattern.search(output)), "fio_error")
