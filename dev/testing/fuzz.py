"""`make fuzz`: damaged messages for the contract and the server.

Valid messages are damaged (bytes flipped, cut out, doubled, swapped with parts of others; numbers and strings made
extreme), and some inputs are noise. Every one goes to the decoders, which may refuse it as a ContractError and in no
other way; one in `--post-every` also goes to the running application over a real database, which must not answer 500.
"""

import argparse
import base64
import io
import logging
import os
import random
import re
import secrets
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import closing
from functools import partial
from pathlib import Path

import django
from django.core.management import call_command

from dev.console import print_error, run_command, say, step
from dev.stack import lifecycle, services
from dev.stack.state import State, default_state
from worker.contract.base import MAX_REPORT_BYTES, ContractError, Message, decode, encode
from worker.contract.greetings import Enrol, Hello
from worker.contract.orders import decode_order
from worker.contract.reports import Report
from worker.contract.signing import unseal

GROWTH_WANTED_BYTES = 20 * 1024 * 1024
SAY_EVERY_S = 10.0
WARM_UP = 0.1  # share of the inputs after which memory is looked at first: caches and arenas are filled by then
EXTREMES = (
    b"0", b"-1", b"1e308", b"-1e999", b"18446744073709551616", b"NaN", b"null", b"true", b'""', b"[]", b"{}",
    b'"\\u0000"',
    b'"\\ud800"', b'"' + b"x" * 5000 + b'"', b"[" * 2000, b"9" * 400, b"\xff\xfe", b"1e-400", b"-0.0", b"2147483648",
)  # fmt: skip
VALUE = re.compile(rb'(?<=[:\[,])(-?\d[\d.eE+-]*|"[^"\\]*"(?!:))')
NUMBERS = (b"0", b"1", b"2", b"-1", b"3.5", b"1e300", b"65536", b"2147483647", b"9223372036854775807", b"1790000000")
NO_HISTOGRAMS = (b"\0", b"\1", b"\2\1\1\5\0", b"\2\0\0", bytes(30_000), b"\xff" * 99, b"\xff\x7f" + bytes(20_000))
STRINGS = (
    b'""', b'"a"', b'"\\u0000"', b'"\\ud800"', b'"x\xc3\xa4"', b'"read"', b'"done"', b'"failed"', b'"../../x"',
    b'"%s%n"',
    *(b'"%b"' % base64.b64encode(raw) for raw in NO_HISTOGRAMS),
    b"\"'; drop table runs_run; --\"", b'"' + b"y" * 1500 + b'"', b'"00000000-0000-0000-0000-000000000000"',
)  # fmt: skip
PATHS: dict[type[Message], str] = {
    Report: "/api/worker/v1/report",
    Hello: "/api/worker/v1/hello",
    Enrol: "/api/worker/v1/enrol",
}


class Fuzzer:
    """Damaged texts, the same ones for the same seed."""

    def __init__(self, seed: int, valid: Sequence[bytes]) -> None:
        self._dice = random.Random(seed)  # noqa: S311 - repeatable, not secret
        self._valid = valid

    def text(self) -> bytes:
        if self._dice.random() < 0.05:
            return self._dice.randbytes(self._dice.randrange(200))
        text = self._dice.choice(self._valid)
        if self._dice.random() < 0.4:
            return self._change_value(text)
        for _ in range(self._dice.choice((1, 1, 1, 2, 5))):
            text = self._dice.choice((self._flip, self._cut, self._double, self._mix, self._extreme))(text)
        return text

    def _place(self, text: bytes) -> int:
        return self._dice.randrange(len(text) + 1)

    def _flip(self, text: bytes) -> bytes:
        at = self._place(text)
        return text[:at] + self._dice.randbytes(1) + text[at + 1 :]

    def _cut(self, text: bytes) -> bytes:
        at = self._place(text)
        return text[:at] + text[at + self._dice.randrange(40) :]

    def _double(self, text: bytes) -> bytes:
        at, to = self._place(text), self._place(text)
        return text[:at] + text[min(at, to) : max(at, to)][:300] + text[at:]

    def _mix(self, text: bytes) -> bytes:
        other = self._dice.choice(self._valid)
        at = self._place(other)
        return text[: self._place(text)] + other[at : at + 200] + text[self._place(text) :]

    def _change_value(self, text: bytes) -> bytes:
        """A number, or what is between two quotation marks, becomes another of its kind: it stays a message."""
        values = list(VALUE.finditer(text))
        if not values:
            return text
        found = self._dice.choice(values)
        new = self._dice.choice(NUMBERS if found.group()[:1] != b'"' else STRINGS)
        return text[: found.start()] + new + text[found.end() :]

    def _extreme(self, text: bytes) -> bytes:
        """A value behind a colon becomes another one: what stays is JSON more often than not."""
        at = text.find(b":", self._place(text)) + 1
        ends = [place for place in (text.find(mark, at) for mark in (b",", b"}", b"]")) if place > 0]
        end = min(ends, default=at)
        return text[:at] + self._dice.choice(EXTREMES) + text[end:]


def main(arguments: Sequence[str]) -> int:
    """0 if nothing but refusals came of it and memory did not grow."""
    options = _options(arguments)
    say(f"Seed {options.seed}, {options.inputs} inputs")
    state = default_state(f"fuzz-{os.getpid()}")
    try:
        post, valid = _application(state)
        posted = [text for text in valid if _is_posted(text)]
        return _run(Fuzzer(options.seed, valid), Fuzzer(options.seed + 1, posted), options, post)
    finally:
        with step("removing the server's processes and data"):
            lifecycle.remove(state)


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make fuzz", description="Damaged messages for contract and server.")
    parser.add_argument("--inputs", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=None, help="default: a fresh one, which is printed")
    parser.add_argument("--post-every", type=int, default=20, help="one input in so many goes to the application too")
    options = parser.parse_args(arguments)
    options.seed = secrets.randbelow(10**6) if options.seed is None else options.seed
    return options


def _is_posted(text: bytes) -> bool:
    """It is one of the messages that the server takes."""
    return any(_reads(kind, text) for kind in PATHS)


def _reads(kind: type[Message], text: bytes) -> bool:
    try:
        decode(text, kind, limit=MAX_REPORT_BYTES)
    except ContractError:
        return False
    return True


def _run(fuzzer: Fuzzer, poster: Fuzzer, options: argparse.Namespace, post: Callable[[bytes], int]) -> int:
    begun = said_at = time.monotonic()
    outcomes: Counter[str] = Counter()
    troubles: list[str] = []
    first_bytes = 0
    for number in range(options.inputs):
        text = fuzzer.text()
        outcomes[decoded(text, troubles)] += 1
        if number % options.post_every == 0:
            text = poster.text()
            _note_post(text, post(text), outcomes, troubles)
        if number == int(options.inputs * WARM_UP):
            first_bytes = resident_bytes()
        if time.monotonic() - said_at > SAY_EVERY_S:
            said_at = time.monotonic()
            left_s = (said_at - begun) / (number + 1) * (options.inputs - number - 1)
            say(f"  {number + 1} of {options.inputs}, {left_s:.0f} s left, {resident_bytes() / 2**20:.0f} MiB")
    return _tell(outcomes, troubles, resident_bytes() - first_bytes, time.monotonic() - begun)


def _note_post(text: bytes, status: int, outcomes: Counter[str], troubles: list[str]) -> None:
    outcomes[f"HTTP {status}"] += 1
    if status >= 500:
        troubles.append(f"HTTP {status} for {text[:300]!r}")


def _tell(outcomes: Counter[str], troubles: Sequence[str], growth_bytes: int, took_s: float) -> int:
    say(f"{took_s:.0f} s: " + ", ".join(f"{count} {name}" for name, count in outcomes.most_common()))
    say(f"Memory grew by {growth_bytes / 2**20:.1f} MiB since a tenth of the inputs (wanted: < 20)")
    for trouble in troubles[:20]:
        print_error(f"✗ {trouble}")
    return 1 if troubles or growth_bytes >= GROWTH_WANTED_BYTES else 0


def decoded(text: bytes, troubles: list[str]) -> str:
    """What all decoders make of it: read, or refused. Anything else is a trouble."""
    read = False
    for name, decoder in DECODERS.items():
        try:
            decoder(text)
            read = True
        except ContractError:
            continue
        except Exception as error:  # noqa: BLE001 - that is what is looked for
            troubles.append(f"{name}: {type(error).__name__}: {error} for {text[:300]!r}")
    return "read" if read else "refused"


def _unseal(text: bytes) -> object:
    return unseal(text.decode("utf-8", "surrogateescape"), host="h", public_keys={}, now=0.0)


def _decode(kind: type[Message], text: bytes) -> object:
    return decode(text, kind, limit=MAX_REPORT_BYTES)


DECODERS: dict[str, Callable[[bytes], object]] = {
    **{kind.__name__: partial(_decode, kind) for kind in PATHS},
    "order": decode_order,
    "envelope": _unseal,
}


def resident_bytes() -> int:
    """VmRSS of proc(5)."""
    status = Path("/proc/self/status").read_text()
    return next(int(line.split()[1]) * 1024 for line in status.splitlines() if line.startswith("VmRSS"))


# ---- the application


def _application(state: State) -> tuple[Callable[[bytes], int], list[bytes]]:
    """What posts a text to it, as a host with an attempt under way; and valid messages about that attempt."""
    lifecycle.start_stores(state, durable=False)
    os.environ.update(services.environment(state))
    django.setup()
    with step("database tables"):
        call_command("migrate", verbosity=0)
    logging.disable(logging.CRITICAL)
    from dev.bench.ingest.simulated_hosts import create_hosts

    player = create_hosts(1)[0]
    return _poster(player.token), [text for message in _examples() for text in _texts(message, str(player.attempt))]


def _examples() -> list[Message]:
    from worker.contract.tests import examples

    return [value for value in vars(examples).values() if isinstance(value, Message)]


def _texts(message: Message, attempt: str) -> list[bytes]:
    """As it is, and about an attempt that the server knows."""
    from worker.contract.tests.examples import ATTEMPT

    text = encode(message)
    return [text, text.replace(ATTEMPT.encode(), attempt.encode())]


def _poster(token: str) -> Callable[[bytes], int]:
    """Past Django's test client, which keeps a kilobyte of every request."""
    from django.core.handlers.wsgi import WSGIHandler

    handler, paths = WSGIHandler(), list(PATHS.values())

    def post(text: bytes) -> int:
        """To the address that it fits best: where it speaks of batches, that of reports."""
        path = paths[0] if b"batches" in text else paths[1] if b"inventory" in text else paths[2]
        with closing(handler(_environ(path, text, token), _start_response)) as answer:
            return int(answer.status_code)

    return post


def _start_response(_status: str, _headers: object, _trouble: object = None, /) -> Callable[[bytes], object]:
    return lambda _data: None


def _environ(path: str, body: bytes, token: str) -> dict[str, object]:
    """What a WSGI server makes of the request (PEP 3333)."""
    return {
        "REQUEST_METHOD": "POST", "SCRIPT_NAME": "", "PATH_INFO": path, "QUERY_STRING": "", "SERVER_NAME": "127.0.0.1",
        "SERVER_PORT": "80", "SERVER_PROTOCOL": "HTTP/1.1", "REMOTE_ADDR": "127.0.0.1",
        "CONTENT_LENGTH": str(len(body)),
        "CONTENT_TYPE": "application/json", "HTTP_AUTHORIZATION": f"Bearer {token}", "wsgi.input": io.BytesIO(body),
        "wsgi.url_scheme": "http", "wsgi.errors": sys.stderr, "wsgi.version": (1, 0), "wsgi.run_once": False,
        "wsgi.multithread": False, "wsgi.multiprocess": False,
    }  # fmt: skip


if __name__ == "__main__":
    run_command(main)
