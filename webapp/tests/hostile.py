"""Hostile values of parameters by their type, and words that no answer may have.

The values of addresses are percent-encoded. `wrong` values violate the type: they have one status, 422.
"""

import builtins
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

import psycopg.errors
from django.db import utils as django_errors

Json = dict[str, Any]
HUGE = ("2147483648", "9223372036854775807", "9223372036854775808", "18446744073709551616", "9" * 3500)
NUMBERS = ("0", "-1", *HUGE, "1e300", "1e400", "-1e300", "nan", "-inf", "٣", "²", "1_000", " 1 ", "0x10", "1.5")
DATES = (
    "0001-01-01", "0001-01-01T00:00:00+23:59", "9999-12-31T23:59:59.999999", "9999-12-31T23:59:59-23:59", "9999-12",
    "0001-01", "2026-02-30", "2026-02-28T24:00+99:99", "-0001-01-01", "99999-01-01",
)  # fmt: skip
CURSORS = (
    "9999-12-31T23:59:59-23:59~1", "0001-01-01T00:00:00+23:59~1", "9999-12-31~99999999999999999999", "2026-01-01~1",
    "nan~1", "inf~1", "-1~-1", "1e300~1", "1~2~3", "~", "@", "@-62135596800000", "@0", "@253402300799999",
    "@99999999999999999999", f"{'0' * 32}.99999.99999999999@1700000000000", f"{'0' * 32}.-1.-1@1700000000000",
)  # fmt: skip
RANGES = (
    "10..1", "1..99999999999", "1..100000", "0..1e300", "1..64 *1", "1..64 *0", "1..64 +0", "1..1000000 *1.0000001",
    "inf..nan", "nan..nan", "1..", "..", "1k..1E", "1s..1000000h",
)  # fmt: skip
LISTS = (
    ",".join(map(str, range(1000))), ",".join(f"name{n}" for n in range(1000)), "1," * 1000, ",,,", "1,1,1", "1,,2",
)  # fmt: skip
TEXTS = (
    "a", "", "'\"><script>{{ 7 }}%s", "\u202e💥\ufffe", "x" * 3500, "[](){}*?+\\", "storage1/../..", "model:x", "run:0",
    "import:99999999999999999999", "run=1&run=2", "x=iodepth", "factor.iodepth=1", "fact.", "label:", "None", "null",
    "/" * 500, "//elsewhere.example/", ".", "* * * * *", "0 0 30 2 *", "UTC", "Mars/Olympus",
)  # fmt: skip
UNREADABLE = ("%00", "%ff%fe", "%ed%a0%80", "a%00b")  # NUL, bytes that are not UTF-8, a surrogate
VALUES = (*map(quote, (*NUMBERS, *DATES, *CURSORS, *RANGES, *LISTS, *TEXTS)), *UNREADABLE)
_LENIENT = (" 1 ", "1_000")  # pydantic reads them as numbers
_IN_PATHS = (*(text for text in NUMBERS if text not in _LENIENT), "a", "x" * 3500, "💥", ".", "../..", "1,2", "'\"><b>")
IN_PATHS = (*(quote(text, safe="") for text in _IN_PATHS), *UNREADABLE)

NO_NUMBER = ("a", "1..2", "1,2", "²x", "2026-01-01", "%ff", "")
WRONG: Mapping[str, tuple[str, ...]] = {  # type or format -> values of an address that violate it
    "integer": (*NO_NUMBER, "1.5", "nan", "inf", "1e300"),
    "number": NO_NUMBER,
    "boolean": ("a", "2", "-1", "1.5", "²"),
    "uuid": ("a", "1", "0" * 31, "g" * 32, "²" * 32),
    "date-time": ("a", "²", "2026-02-30", "0000-01-01", "9" * 400),
}

# ---- bodies

DEEP = 100_000
HUGE_INTEGER = 10**3000
# JSON values of a wrong type, by the type of the field. Text is accepted for numbers, so it is not among them.
WRONG_JSON: Mapping[str, tuple[Any, ...]] = {
    "string": (1, 1.5, True, [], {}, ["a"], HUGE_INTEGER),
    "integer": ("a", 1.5, [], {}, "1..2", "٣x"),
    "number": ("a", [], {}, "1..2"),
    "boolean": ("a", 7, [], {}),
    "array": (1, "a", {}, True),
    "object": (1, "a", [], True),
}
ODD_JSON: tuple[Any, ...] = (
    None, 0, -1, 2**31, 2**63 - 1, 2**63, 2**64, HUGE_INTEGER, -(2**63) - 1, 1e300, -1e300, True, "", "\ud800", "a\0b",
    "x" * 100_000, "9" * 5000, "1e400", "nan", "٣", "0001-01-01", "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59-23:59", "9999-12-31T23:59:59Z", "24:00", "* * * * *", "1..99999999999", [], {}, [None],
    ["a"] * 1000, ["\ud800"], ["\0"], [2**63], [[]], {"a": {}}, {"\ud800": "\0"}, {"a": 1e300}, {"": ""},
    list(range(1000)),
)  # fmt: skip
# Whole bodies that are no JSON, or no object
UNREADABLE_BODIES = (b"{", b"\xff\xfe", b"[" * DEEP, b'{"a":' * DEEP, b"", b"nan", b'"\\ud800"', b"\0")
NO_OBJECTS = (b"[]", b"1", b'"a"', b"null", b"true", b"9" * 3000, b"1e999")


def nested(levels: int) -> Any:
    value: Any = "a"
    for _ in range(levels):
        value = [value]
    return value


def deep_object(levels: int) -> Json:
    value: Json = {}
    for _ in range(levels):
        value = {"a": value}
    return value


def encoded(body: object) -> bytes:
    return json.dumps(body).encode()


def types_of(schema: Json, schemas: Mapping[str, Json]) -> set[str]:
    """The JSON types that a field accepts, with `enum` for one of listed texts; empty if it accepts anything."""
    if "$ref" in schema:
        return types_of(schemas[schema["$ref"].rsplit("/", 1)[1]], schemas)
    parts = [*schema.get("anyOf", ()), *schema.get("allOf", ())]
    if parts:
        return set().union(*(types_of(part, schemas) for part in parts))
    if schema.get("format") in ("date-time", "time"):
        return {"string", "number"}  # pydantic also reads seconds
    kind = schema.get("type", [])
    return {kind} if isinstance(kind, str) else set(kind)


def wrong_json(types: set[str]) -> Iterator[Any]:
    """Values that no type of the field accepts."""
    plain = types - {"null"}
    for kind in plain:
        for value in WRONG_JSON[kind]:
            if not any(_accepts(other, value) for other in plain):
                yield value


def _accepts(kind: str, value: object) -> bool:
    match kind:
        case "string":
            return isinstance(value, str)
        case "integer" | "number":
            return isinstance(value, int | float) or (isinstance(value, str) and value.isdigit())
        case "boolean":
            return isinstance(value, bool)
        case "array":
            return isinstance(value, list)
        case _:
            return isinstance(value, dict)


# ---- answers


def _classes() -> set[str]:
    kinds = [
        *vars(builtins).values(), *vars(django_errors).values(), *vars(psycopg.errors).values(), RecursionError,
    ]  # fmt: skip
    return {kind.__name__ for kind in kinds if isinstance(kind, type) and issubclass(kind, Exception)} - {"Error"}


# Of PostgreSQL, psycopg, numpy, Python, msgspec and pydantic's addresses; pydantic's sentences are the API's own.
FRAGMENTS = (
    "integer out of range", "is out of range", "value out of range", "invalid input syntax", "Traceback", "DETAIL:",
    "CONTEXT:", "LINE 1", "violates", "constraint",
    "literal for int", "could not convert", "cannot convert", "not supported between", "Unable to allocate",
    "codec can't", "isoformat string", "integer string conversion", "must be str", "object has no attribute",
    "object is not", "has no attribute", "positional argument", "recursion depth", "errors.pydantic.dev", "psycopg",
    "numpy", "PyObject", "surrogates not allowed", "does not match format", "NoneType", "SELECT ", "UPDATE ",
)  # fmt: skip
_LEAKS = re.compile(rf"\b(?:{'|'.join(sorted(_classes()))})\b|{'|'.join(map(re.escape, FRAGMENTS))}")


def leak(body: str) -> str:
    """The first word of a library that the body has, "" without one."""
    match = _LEAKS.search(body)
    return match[0] if match else ""
