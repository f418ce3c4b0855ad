"""The installed PostgreSQL."""

import os
import pwd

from worker.engines.pgbench import program
from worker.process import ToolError, ask


def version() -> str:
    """`PostgreSQL 15.18`; "" if it is not installed."""
    folder = program.bin_folder()
    if not folder:
        return ""
    try:
        words = ask(f"{folder}/pgbench", "--version").out.split()  # pgbench (PostgreSQL) 15.18 (Debian 15.18-0)
    except ToolError:
        return ""
    return f"PostgreSQL {words[2]}" if len(words) > 2 else ""


def missing_user() -> str:
    """The user that PostgreSQL runs as, if the worker is root and it does not exist; else ""."""
    if os.geteuid() != 0:
        return ""
    try:
        pwd.getpwnam(program.USER)
    except KeyError:
        return program.USER
    return ""
