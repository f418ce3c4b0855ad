"""Log lines say what they are about, in both forms."""

import json
import logging
import os
import subprocess
import sys

from webapp.core.logs import AboutFilter, JsonFormatter, PlainFormatter, about, bind


def line(message: str, *arguments: object, formatter: logging.Formatter, failed: bool = False) -> str:
    trace = None
    if failed:
        try:
            raise ValueError("inner")
        except ValueError as error:
            trace = (ValueError, error, error.__traceback__)
    record = logging.LogRecord("webapp.x", logging.WARNING, "x.py", 1, message, arguments, trace)
    AboutFilter().filter(record)
    return formatter.format(record)


def test_it_names_what_a_line_is_about_and_no_more_afterwards() -> None:
    with about(host="storage1"):
        with about(attempt="a-1", run=None):
            inner = json.loads(line("said %d", 3, formatter=JsonFormatter()))
        bind(run=7)
        outer = json.loads(line("x", formatter=JsonFormatter()))
    after = json.loads(line("x", formatter=JsonFormatter()))
    assert (inner["host"], inner["attempt"], inner["message"]) == ("storage1", "a-1", "said 3")
    assert "run" not in inner
    assert (outer["run"], outer["host"], "attempt" in outer) == ("7", "storage1", False)
    assert set(after) == {"at", "level", "logger", "message"}


GUNICORN = """
import warnings
from gunicorn.config import Config
from gunicorn.glogging import Logger
from webapp import serving
config = Config()
config.set("logconfig_dict", serving.logconfig_dict)
Logger(config).info("Listening at %s", "x")
warnings.warn("old", stacklevel=1)
"""


def test_gunicorn_writes_the_same_json_lines() -> None:
    environment = {**os.environ, "SWEETSPOT_LOG_FORMAT": "json"}
    done = subprocess.run([sys.executable, "-c", GUNICORN], env=environment, capture_output=True, text=True, check=True)
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    assert [line["logger"] for line in lines] == ["gunicorn.error", "py.warnings"]
    assert lines[0]["message"] == "Listening at x"


def test_it_keeps_a_trace_in_one_line() -> None:
    text = line("broke", formatter=JsonFormatter(), failed=True)
    assert "\n" not in text
    assert "ValueError: inner" in json.loads(text)["trace"]


def test_it_writes_the_same_for_people() -> None:
    with about(attempt="a-1"):
        text = line("x", formatter=logging.Formatter("%(levelname)s %(name)s%(about)s: %(message)s"))
    assert text == "WARNING webapp.x attempt=a-1: x"


def test_text_of_others_forges_no_line_and_controls_no_terminal() -> None:
    with about(host="a\nb"):
        formatter = PlainFormatter("%(message)s%(about)s")
        text = line("refused: %s", "x\r\n2026-01-01 WARNING all is well\x1b[2J", formatter=formatter)
    assert text == "refused: x\\r\\n2026-01-01 WARNING all is well\\x1b[2J host=a\\nb"


def test_a_trace_for_people_keeps_its_lines() -> None:
    text = line("broke", formatter=PlainFormatter("%(message)s"), failed=True)
    assert text.startswith("broke\nTraceback")
