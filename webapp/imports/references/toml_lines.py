"""Lines of keys in a `reference.toml`, for error messages: tomllib forgets them."""

import re
from collections.abc import Iterator

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
