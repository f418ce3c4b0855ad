"""Recordings of controller tools: what they printed, and what this worker read from it.

A recording from real hardware becomes a test. Serial numbers, world-wide names and the host's name are replaced by
random ones of the same shape: columns keep their places, and equal values stay equal.
"""

import hashlib
import platform
import re
import secrets
from collections.abc import Iterable, Iterator
from contextlib import suppress

import msgspec

from worker.controllers import ToolAnswers, adapter_named, read_controllers
from worker.controllers.base import CALLS, Call
from worker.process.run import ToolError

# `"SN" : "6SL02ABC",`, `Serial No       : SV12345678`
_IDENTITY = re.compile(
    r'^[\s"]*[^":\n]*(?:serial|\bSN\b|WWN|NAA|SAS address|unique identifier)[^":\n]*"?\s*[:=]\s*"?([^"\n]+)',
    re.IGNORECASE | re.MULTILINE,
)
_WORLD_WIDE_NAME = re.compile(r"(?<![0-9a-z])(?:0x)?([0-9a-f]{32}|[0-9a-f]{16})(?![0-9a-z])", re.IGNORECASE)
_SHORTEST = 4  # a shorter text identifies nothing, and replacing it would change other numbers
_DUMP = re.compile(r"(?:\b[0-9a-f]{2}(?:\s|\\n|\\u000a)+){12,}", re.IGNORECASE)  # inquiry data have the serial number


class RecordedCall(msgspec.Struct, frozen=True):
    program: str
    arguments: tuple[str, ...]
    exit_code: int
    out: tuple[str, ...]  # lines
    err: tuple[str, ...]


class Recording(msgspec.Struct, frozen=True):
    drivers: tuple[str, ...]
    calls: tuple[RecordedCall, ...]
    answers: ToolAnswers  # what the worker read; to be corrected by hand where the worker is wrong


def call_tools(drivers: tuple[str, ...]) -> tuple[list[Call], ToolAnswers]:
    """Read every controller of these drivers, and each virtual drive by itself. Takes seconds."""
    calls: list[Call] = []
    token = CALLS.set(calls)
    try:
        answers = read_controllers(drivers)
        for name, controller in answers.controllers:
            for drive in controller.virtual_drives:
                with suppress(ToolError):  # its output is recorded
                    adapter_named(name).virtual_drive(controller.number, drive.number)
    finally:
        CALLS.reset(token)
    return calls, answers


def anonymised(drivers: tuple[str, ...], calls: list[Call], answers: ToolAnswers) -> Recording:
    texts = [text for call in calls for text in (call.output.out, call.output.err)]
    replaced = _Replaced({*_identities(texts), *_serials(answers)})
    recorded = (
        RecordedCall(
            program=call.program.rpartition("/")[2],
            arguments=call.arguments,
            exit_code=call.output.exit_code,
            out=tuple(replaced(call.output.out).split("\n")),
            err=tuple(replaced(call.output.err).split("\n")),
        )
        for call in calls
    )
    read = msgspec.json.decode(replaced(msgspec.json.encode(answers).decode()), type=ToolAnswers)
    return Recording(drivers, tuple(dict.fromkeys(recorded)), read)


def _identities(texts: Iterable[str]) -> Iterator[str]:
    for text in texts:
        yield from (match[1].strip(" ,") for match in _IDENTITY.finditer(text))
        yield from (match[1] for match in _WORLD_WIDE_NAME.finditer(text))


def _serials(answers: ToolAnswers) -> Iterator[str]:
    """MegaCli prints those of drives in columns without a name."""
    for _, controller in answers.controllers:
        yield from (controller.serial, *(drive.serial for drive in controller.physical_drives))


class _Replaced:
    """Replaces identities in a text; each of them by the same text everywhere."""

    def __init__(self, identities: Iterable[str]) -> None:
        values = {value.lower().removeprefix("0x") for value in identities}
        # A value without a digit is a word such as `Present`; one of zeros only stands for none.
        values = {v for v in values if len(v) >= _SHORTEST and re.search("[0-9]", v) and v.strip("0")}
        longest_first = sorted(values, key=len, reverse=True)
        self._identity = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)", re.IGNORECASE)
        node = platform.node()
        hosts = sorted({re.escape(name) for name in (node, node.partition(".")[0]) if name}, key=len, reverse=True)
        self._host = re.compile(rf"\b(?:{'|'.join(hosts)})\b" if hosts else r"(?!)", re.IGNORECASE)
        self._salt = secrets.token_bytes(16)

    def __call__(self, text: str) -> str:
        text = _DUMP.sub(lambda match: re.sub(r"[0-9a-f]{2}(?![0-9a-z])", "00", match[0], flags=re.IGNORECASE), text)
        return self._identity.sub(lambda match: self._pseudonym(match[0]), self._host.sub("host", text))

    def _pseudonym(self, value: str) -> str:
        """A digit for a digit, a letter for a letter in the same case; hexadecimal digits stay such."""
        letters = "abcdef" if re.fullmatch("[0-9a-f]+", value, re.IGNORECASE) else "abcdefghijklmnopqrstuvwxyz"
        noise = hashlib.shake_256(self._salt + value.lower().encode()).digest(len(value))
        return "".join(_substitute(character, number, letters) for character, number in zip(value, noise, strict=True))


def _substitute(character: str, number: int, letters: str) -> str:
    if character.isdecimal():
        return str(number % 10)
    if not character.isalpha():
        return character
    letter = letters[number % len(letters)]
    return letter.upper() if character.isupper() else letter
