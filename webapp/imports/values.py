"""Values in the text of other tools: rows of CSV by the names of their columns, numbers, sizes, lines and factors; and
why a file is refused."""

import csv
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Self

from webapp.core.errors import Refusal
from webapp.plans.factors import FACTORS
from webapp.plans.values import Value, ValueRefused

# The error of parsers and of reading files.


class ImportRefused(Refusal):
    """A file that cannot be imported. `reason` is a sentence: what is wrong, where, and what to do. Reports count files
    by it, so what differs between files with the same reason is a sentence of its own, `detail`."""

    def __init__(self, reason: str, detail: str = "", *, code: str = "import_refused") -> None:
        super().__init__(code, reason)
        self.detail = detail

    @property
    def details(self) -> tuple[str, ...]:
        return (self.detail,) if self.detail else ()


class ArchiveDamaged(ImportRefused):
    """Nothing after this place of an archive can be read."""


# Numbers, sizes, lines and factors in the text of other tools, with limits.

KIB, MIB, GIB = 1024, 1024**2, 1024**3
MEGABYTE = 10**6
US, MS, SECOND = 1e3, 1e6, 1e9  # in ns

MAX_CHARACTERS = 24 * MIB
MAX_LINES = 500_000
MAX_LINE = 100_000  # characters
LARGEST = 1e20  # larger than any count, rate or time in any unit
_NUMBER = re.compile(r"\d{1,30}(\.\d{0,30})?(e[+-]?\d{1,3})?|\.\d{1,30}", re.ASCII | re.IGNORECASE)
_SIZE = re.compile(r"(\d{1,15})\s?([kmgt]?)(?:i?b)?(?:ytes)?", re.ASCII | re.IGNORECASE)


def lines(text: str) -> list[str]:
    """The lines of a file, without line ends. Raises ImportRefused if the file or a line is too long."""
    if len(text) > MAX_CHARACTERS:
        raise ImportRefused(f"The text has {len(text):,} characters, more than {MAX_CHARACTERS:,}. Split the file.")
    if text.count("\n") > MAX_LINES:
        raise ImportRefused(f"The text has more than {MAX_LINES:,} lines. Split the file.")
    text_lines = text.replace("\r\n", "\n").split("\n")
    for number, line in enumerate(text_lines, start=1):
        if len(line) > MAX_LINE:
            raise ImportRefused(f"Line {number} has {len(line):,} characters, more than {MAX_LINE:,}.")
    return text_lines


class Printed(float):
    """A number as a tool printed it. `step` is the distance to the next number with as many decimals: 0.1 for 4.2.

    Times or over the factor of a unit, it keeps its step, in that unit. All other arithmetic gives a plain float.
    """

    step: float

    def __new__(cls, value: float, step: float) -> Self:
        made = super().__new__(cls, value)
        made.step = step
        return made

    def __mul__(self, factor: float) -> "Printed":
        return Printed(float(self) * factor, self.step * factor)

    def __truediv__(self, divisor: float) -> "Printed":
        return Printed(float(self) / divisor, self.step / divisor)


def number(text: str, what: str = "value") -> Printed:
    """A number from 0 to LARGEST. Raises ImportRefused."""
    text = text.strip()
    if not _NUMBER.fullmatch(text):
        raise ImportRefused(f"The {what} `{text[:40]}` is not a number, or is negative.")
    value = float(text)
    if value > LARGEST:
        raise ImportRefused(f"A {what} of {value:.6g} is not possible.")
    digits, _, exponent = text.lower().partition("e")
    return Printed(value, 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2])))


def whole(text: str, what: str = "value") -> int:
    """A whole number that is not negative. Raises ImportRefused."""
    if not re.fullmatch(r"\d{1,19}", text.strip(), re.ASCII):
        raise ImportRefused(f"The {what} `{text.strip()[:40]}` is not a whole number, or is negative.")
    return int(text)


def size(text: str, what: str = "size") -> int:
    """Bytes of a size with binary units: 512B, 4K, 4KiB, 1Mb. Raises ImportRefused."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ImportRefused(f"The {what} `{text.strip()[:40]}` is not a size like 4K or 1M.")
    return int(match[1]) << (10 * " kmgt".index(match[2].lower() or " "))


def sorted_factors(stated: Mapping[str, Value]) -> tuple[dict[str, Value], dict[str, str]]:
    """The stated values that our factors allow, and the others as text. None is left out."""
    factors: dict[str, Value] = {}
    other: dict[str, str] = {}
    for name, value in stated.items():
        if value is None:
            continue
        try:
            text = value if isinstance(value, str) else FACTORS[name].values.write(value)
            factors[name] = FACTORS[name].values.parse(text)
        except ValueRefused:
            other[FACTORS[name].label.lower()] = str(value)
    return factors, other


def mix(reads: float, random: float) -> tuple[dict[str, Value], dict[str, str]]:
    """Factors of a test by its percentages of reads and of random I/Os, and as text what no factor expresses: partly
    random I/O, or 0.5 % reads."""
    factors: dict[str, Value] = {}
    other: dict[str, str] = {}
    if random in (0, 100):
        prefix, mixed = ("rand", "randrw") if random else ("", "readwrite")
        factors["pattern"] = mixed if 0 < reads < 100 else f"{prefix}read" if reads else f"{prefix}write"
    else:
        other["random I/Os"] = f"{random:g} %"
    if 0 < reads < 100:
        if reads == int(reads):
            factors["read_percent"] = int(reads)
        else:
            other["reads"] = f"{reads:.3g} %"
    return factors, other


Row = Mapping[str, str]


def fields(line: str, delimiter: str = ",") -> list[str]:
    """The fields of one line, without spaces around them. Raises ImportRefused."""
    try:
        return [field.strip() for field in next(csv.reader([line], delimiter=delimiter, strict=True), [])]
    except csv.Error as error:
        raise ImportRefused(f"A line is not valid CSV: {error}.") from error


def rows(names: list[str], text_lines: Iterable[str], delimiter: str = ",") -> Iterator[Row]:
    """Each line as name -> field. Raises ImportRefused if a line has fewer fields than there are names."""
    for line in text_lines:
        cells = fields(line, delimiter)
        if len(cells) < len(names):
            raise ImportRefused(
                f"A row has {len(cells)} fields and its head {len(names)}: the row is truncated, `{line[:60]}`."
            )
        if any(cells[len(names) :]):
            raise ImportRefused(
                f"A row has {len(cells)} fields and its head {len(names)}: put quotes around fields with commas, "
                f"`{line[:60]}`."
            )
        yield dict(zip(names, cells, strict=False))


def optional(row: Row, name: str) -> float | None:
    """The number in this column; None without the column or with an empty field."""
    text = row.get(name, "")
    return number(text, name) if text else None
