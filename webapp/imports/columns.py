"""Columns of plain CSV, stated by hand: a line `column = field` each."""

from collections.abc import Mapping

from webapp.core.errors import Refusal
from webapp.core.nearest import nearest
from webapp.imports.formats.plain_csv import FIELDS_IN_WORDS, LABELS, RESULTS, can_be, part_of
from webapp.imports.labels import FACTOR_OF
from webapp.plans.factors import FACTORS

MAX_COLUMNS = 100
MAX_NAME = 200


def read_columns(lines: str) -> dict[str, str]:
    """Column -> field. Raises Refusal for a line that is none, an unknown field, and a field of two columns."""
    found: dict[str, str] = {}
    for line in filter(str.strip, lines.splitlines()):
        name, _, field = map(str.strip, line.rpartition("="))
        if not name or not field:
            raise _refused(
                f"`{line.strip()[:60]}` does not say what a column is. Write column = field, such as IO/s = iops."
            )
        if name in found:
            raise _refused(f"The column `{name[:60]}` is stated twice.")
        found[name] = FACTOR_OF.get(field, field)
    check_columns(found)
    return found


def check_columns(columns: Mapping[str, str]) -> None:
    """Raises Refusal."""
    if len(columns) > MAX_COLUMNS or any(len(name) > MAX_NAME for name in columns):
        raise _refused(f"State at most {MAX_COLUMNS} columns, each with a name of at most {MAX_NAME} characters.")
    for field in columns.values():
        if not can_be(field):
            raise _refused(f"`{field[:60]}` is not a field.{_near(field)} {FIELDS_IN_WORDS}")
    parts = [part_of(field) for field in columns.values()]
    if twice := [name for name, field in columns.items() if parts.count(part_of(field)) > 1]:
        names = " and ".join(f"`{name[:60]}`" for name in twice[:2])
        raise _refused(f"{names} have the same field. State one column for each field.")


def _near(field: str) -> str:
    near = nearest(field.lower(), [*RESULTS, *LABELS, *FACTORS, "direction", "name"])
    return f" Did you mean `{near}`?" if near else ""


def _refused(words: str) -> Refusal:
    return Refusal("import_columns", words)
