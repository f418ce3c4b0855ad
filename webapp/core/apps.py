from importlib import import_module

import psycopg
from django.apps import AppConfig
from psycopg.types.array import ListDumper


class _Escape:
    """Takes the place of a regular expression: a backslash before each quotation mark and backslash."""

    @staticmethod
    def sub(_replacement: bytes, text: bytes) -> bytes:
        return bytes(text).replace(b"\\", b"\\\\").replace(b'"', b'\\"')


class RowArrayDumper(ListDumper):
    """Rows are inserted many at once as arrays of columns. psycopg escapes an array's texts by one call for each
    quotation mark; that is most of the CPU time of 1,000 rows with JSON, and ten times as much when its small objects
    just fill a block of Python's memory."""

    _re_esc = _Escape()  # type: ignore[assignment]  # psycopg calls its `sub` alone


class CoreConfig(AppConfig):
    name = "webapp.core"

    def ready(self) -> None:
        import_module("webapp.core.checks")  # importing it registers the checks
        psycopg.adapters.register_dumper(list, RowArrayDumper)  # before the first connection
