"""Bytes as text: UTF-8, UTF-16 with a byte order mark, otherwise Latin-1."""

import codecs

from webapp.imports.errors import ImportRefused

_UTF_16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)


def is_binary(head: bytes) -> bool:
    """Whether the first bytes of a file show that it is no text."""
    return b"\0" in head and not head.startswith(_UTF_16)


def decode(data: bytes) -> str:
    """Raises ImportRefused for binary files."""
    if data.startswith(_UTF_16):
        try:
            text = data.decode("utf-16")
        except UnicodeDecodeError as error:
            raise ImportRefused("The file begins like UTF-16 but is not valid UTF-16.") from error
        if "\0" in text:
            raise ImportRefused("The file is binary, not text.", code="import_binary")
        return text
    if b"\0" in data:
        raise ImportRefused("The file is binary, not text.", code="import_binary")
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError:
        return data.decode("latin-1")
