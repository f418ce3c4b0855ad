"""`import`: send results of other tools."""

import argparse
import json
import os
import secrets
import tarfile
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import IO

from . import output
from .answers import Import, read
from .errors import ExitCode, UsageError
from .server import Server

MAX_BYTES = 512 * 1024 * 1024
ARCHIVE = "folder.tar"  # the server leaves this name out of the paths


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("import", help="import results of other tools")
    parser.add_argument("paths", nargs="+", type=Path, metavar="PATH", help="file, folder or archive")
    parser.add_argument(
        "--label", default="", metavar="PATTERN", help="labels in paths, as {host}/{drive}/{rw}-{bs}.json"
    )
    parser.add_argument("--set", action="append", default=[], metavar="NAME=TEXT", help="label of all files")
    parser.add_argument(
        "--column", action="append", default=[], metavar="NAME=FIELD", help="what a column of plain CSV is: IO/s=iops"
    )
    parser.add_argument("--title", default="", help="default: name of the first path")
    parser.add_argument("--json", action="store_true")
    parser.set_defaults(command=run_import)


def run_import(options: argparse.Namespace, server: Server) -> ExitCode:
    fields = {
        "title": options.title or options.paths[0].resolve().name,
        "pattern": options.label,
        "labels": "\n".join(_label(text) for text in options.set),
        "columns": "\n".join(options.column),
    }
    with tempfile.TemporaryFile() as body:
        content_type = _write_form(body, fields, options.paths)
        if body.tell() > MAX_BYTES:
            raise UsageError("These files are more than 512 MiB after compression. Import them in several parts.")
        answer = server.upload("imports", body, content_type)
    made = read(Import, answer)
    if options.json:
        output.print_json(answer)
    else:
        _print(made, server)
    return ExitCode.OK if made.results_made else ExitCode.FAILED


def _label(text: str) -> str:
    name, is_there, value = text.partition("=")
    if not is_there or not name.strip():
        raise UsageError(f"`{text}` is not a label. Write NAME=TEXT, for example drive=PM9A3.")
    return f"{name.strip()}: {value.strip()}"


def _write_form(body: IO[bytes], fields: dict[str, str], paths: Sequence[Path]) -> str:
    """multipart/form-data (RFC 7578) with one file: an archive with all paths, so that folders keep their names."""
    boundary = f"sweetspot-{secrets.token_hex(16)}"
    for name, text in fields.items():
        _write_head(body, boundary, f'name="{name}"')
        body.write(text.encode() + b"\r\n")
    _write_head(body, boundary, f'name="file"; filename={json.dumps(ARCHIVE)}', "Content-Type: application/gzip\r\n")
    _write_archive(body, paths)
    body.write(f"\r\n--{boundary}--\r\n".encode())
    return f"multipart/form-data; boundary={boundary}"


def _write_head(body: IO[bytes], boundary: str, disposition: str, more: str = "") -> None:
    body.write(f"--{boundary}\r\nContent-Disposition: form-data; {disposition}\r\n{more}\r\n".encode())


def _write_archive(body: IO[bytes], paths: Sequence[Path]) -> None:
    if missing := [path for path in paths if not path.exists()]:
        raise UsageError(f"There is no {missing[0]}.")
    whole = [path.resolve() for path in paths]
    top = Path(os.path.commonpath([path.parent for path in whole]))
    with tarfile.open(fileobj=body, mode="w:gz") as archive:
        for path in whole:
            for file, name in _files(path, top):
                try:
                    archive.add(file, arcname=name, recursive=False)
                except OSError as error:
                    raise UsageError(f"{file} cannot be read: {error.strerror}.") from error


def _files(path: Path, top: Path) -> Iterator[tuple[Path, str]]:
    """Files with their names in the archive, which begin where the given paths differ."""
    for file in sorted(path.rglob("*")) if path.is_dir() else [path]:
        if file.is_file() and not file.is_symlink():
            yield file, file.relative_to(top).as_posix()


def _print(made: Import, server: Server) -> None:
    summary = f"{made.results_made} results from {made.files_read} files, {made.files_refused} of them left out"
    print(output.printable(f"Import {made.number} “{made.title}”: {summary}. {server.page(f'imports/{made.number}/')}"))
    for reason, count in made.refused.items():
        output.remark(f"  {count} left out: {reason}")
