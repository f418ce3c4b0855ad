"""`reference.toml`: what a reference is, where it was published, and its files.

Factors are written as in a plan: `block_size = "4k"`. A `[[files]]` table names a file in the same folder: output of a
tool that `imports.formats` recognises, or a table of ours (`.csv`, see `table`), for which it names the tool.
"""

import re
import tomllib
from collections.abc import Iterator, Mapping
from pathlib import Path

import msgspec

from webapp.imports.formats.plain_csv import factor, is_field
from webapp.imports.values import ImportRefused
from webapp.plans.factors import FACTORS, closest
from webapp.plans.values import Value

# The error of a damaged data file.


class ReferenceDamaged(Exception):
    """A data file of a reference is damaged: our mistake, not a user's. The message names the file and the line."""

    def __init__(self, file: str, line: int, reason: str) -> None:
        super().__init__(f"{file}, line {line}: {reason}")


# Lines of keys in a `reference.toml`, for error messages: tomllib forgets them.

_TABLE = re.compile(r"\s*\[\[?(\w+)(?:\.(\w+))?\]\]?\s*")
_KEY = re.compile(r'\s*"?([^"=]+?)"?\s*=')


def line_of(text: str, key: str, *, table: str = "", file: int | None = None) -> int:
    """The line of a key of the head, or of the `[[files]]` number `file` from 0. `table` is "factors" or "labels".

    `key` may also be the name of a table. Without such a key it is the line where the head or the `[[files]]` begins.
    """
    first = 1
    for line, place in _places(text):
        if place in ((file, table, key), (file, key, "")):
            return line
        if place == (file, "", "") and file is not None:
            first = line
    return first


def _places(text: str) -> Iterator[tuple[int, tuple[int | None, str, str]]]:
    """Each line with its `[[files]]` number, its table in it, and its key ("" for the table itself)."""
    file: int | None = None
    table = ""
    for line, content in enumerate(text.split("\n"), start=1):
        if header := _TABLE.fullmatch(content):
            is_file = header[1] == "files"
            table = (header[2] or "") if is_file else header[1]
            file = (0 if file is None else file + 1) if is_file and not table else file
            yield line, (file, table, "")
        elif key := _KEY.match(content):
            yield line, (file, table, key[1])


# The text of a data file.


def text_of(folder: Path, name: str) -> str:
    """Raises ReferenceDamaged."""
    path = folder / name
    if not path.is_file():
        raise ReferenceDamaged(f"{folder.name}/{name}", 1, "The file is missing.")
    content = path.read_bytes()
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ReferenceDamaged(f"{folder.name}/{name}", line, "The text is not UTF-8.") from error


NAME = "reference.toml"
_DAY = r"\d{4}(-\d{2}(-\d{2})?)?"
_DATE = re.compile(rf"{_DAY}|{_DAY} to {_DAY}|before {_DAY}")
_MAX_LABEL = 200
RESERVED = ("table", "note")  # columns of tables that are no labels
_FIELD = re.compile(r"field `([^`]+)`")
_AT = re.compile(r"at `\$\.(?:files\[(\d+)\]\.?)?(\w*)")
_LABEL = re.compile(r"[a-z][A-Za-z0-9 ./-]{0,59}")


class File(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`table` names its entries: the table's caption in the source."""

    name: str
    table: str = ""
    tool: str = ""
    factors: dict[str, str] = {}
    labels: dict[str, str] = {}
    notes: tuple[str, ...] = ()


class About(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`factors` and `labels` are those of all entries."""

    title: str
    source: str  # author, title, where
    date: str  # of publication: 2010-03-10, 2010-12, 2007, "before 2010-03", "2011-06 to 2011-09"
    files: tuple[File, ...]
    note: str = ""
    factors: dict[str, str] = {}
    labels: dict[str, str] = {}


def read(folder: Path) -> About:
    """Raises ReferenceDamaged."""
    text = text_of(folder, NAME)
    try:
        about = msgspec.convert(tomllib.loads(text), About)
    except tomllib.TOMLDecodeError as error:
        place = re.search(r"at line (\d+)", str(error))
        raise _damaged(folder, int(place[1]) if place else text.count("\n") + 1, str(error)) from error
    except msgspec.ValidationError as error:
        raise _damaged(folder, _line_of_error(text, str(error)), str(error)) from error
    _check(folder, text, about)
    return about


def factor_values(stated: Mapping[str, str]) -> dict[str, Value]:
    """The stored values of checked texts."""
    return {name: factor(name, text) for name, text in stated.items()}


def _line_of_error(text: str, message: str) -> int:
    """msgspec names the field and where it is: "… unknown field `foo` - at `$.files[0]`"."""
    field, at = _FIELD.search(message), _AT.search(message)
    key = field[1] if field else at[2] if at else ""
    return line_of(text, key, file=int(at[1]) if at and at[1] else None)


def _damaged(folder: Path, line: int, reason: str) -> ReferenceDamaged:
    return ReferenceDamaged(f"{folder.name}/{NAME}", line, reason)


def _check(folder: Path, text: str, about: About) -> None:
    for key, value, limit in (("title", about.title, 200), ("source", about.source, 1000)):
        if not value.strip() or len(value) > limit:
            raise _damaged(folder, line_of(text, key), f"The {key} is empty or longer than {limit} characters.")
    if not _DATE.fullmatch(about.date):
        raise _damaged(folder, line_of(text, "date"), f"The date `{about.date}` is not like 2010-03-10 or 2010-03.")
    _check_stated(folder, text, about.factors, about.labels, None)
    for number, file in enumerate(about.files):
        _check_stated(folder, text, file.factors, file.labels, number)
        if file.name in (other_file.name for other_file in about.files[:number]):
            raise _damaged(folder, line_of(text, "name", file=number), f"`{file.name}` is named twice.")
        if not (folder / file.name).is_file() or Path(file.name).name != file.name:
            raise _damaged(folder, line_of(text, "name", file=number), f"There is no file `{file.name}` in the folder.")
        if file.name.endswith(".csv") != bool(file.tool):
            raise _damaged(folder, line_of(text, "tool", file=number), "Only a table (.csv) needs a tool.")
    if unused := {entry.name for entry in folder.iterdir()} - {NAME, *(file.name for file in about.files)}:
        raise _damaged(folder, 1, f"No `[[files]]` table names `{min(unused)}`.")


def _check_stated(folder: Path, text: str, factors: dict[str, str], labels: dict[str, str], file: int | None) -> None:
    problems = [
        *(("factors", name, _factor_problem(name, value)) for name, value in factors.items()),
        *(("labels", name, label_problem(name, value)) for name, value in labels.items()),
    ]
    for table, name, reason in problems:
        if reason:
            raise _damaged(folder, line_of(text, name, table=table, file=file), reason)


def _factor_problem(name: str, value: str) -> str:
    """Why this is not a value of a factor, or ""."""
    if name not in FACTORS or not is_field(name):
        hint = f" Use `{closest(name)}`." if closest(name) not in ("", name) else ""
        return f"`{name}` is not a factor of a reference.{hint}"
    try:
        factor(name, value)
    except ImportRefused as error:
        return str(error)
    return ""


def label_problem(name: str, value: str) -> str:
    """Why this is not a label, or ""."""
    if is_field(name):
        return f"`{name}` is a factor or a result, not a label."
    if not _LABEL.fullmatch(name) or name in RESERVED:
        return f"`{name}` is not a label: use a lowercase letter, then letters, digits and spaces."
    if not value.strip() or len(value) > _MAX_LABEL:
        return f"The label {name} is empty or longer than {_MAX_LABEL} characters."
    return ""
