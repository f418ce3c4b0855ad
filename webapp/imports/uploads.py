"""Files that were sent in one request, by a form, a script or the API."""

import tempfile
from collections.abc import Iterable, Iterator
from itertools import chain
from pathlib import Path, PurePosixPath
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from msgspec.structs import replace

from webapp.core.errors import Refusal
from webapp.imports.reading import LeftOut, Limits, Read, Refused, read
from webapp.imports.reading.order import in_order
from webapp.imports.services import add_found
from webapp.imports.storing import Stored
from webapp.results.models import Import

PACKED = "folder.tar"  # name of the archives that our script makes of folders; the paths inside count
MAX_BYTES = 512 * 1024**2  # of one request
LIMITS = Limits(total_bytes=2 * 1024**3)

Uploads = Iterable["UploadedFile[Any]"]


def check_size(files: Uploads) -> None:
    """Raises Refusal if there are too many bytes for one request."""
    if sum(file.size or 0 for file in files) > MAX_BYTES:
        words = f"At most {MAX_BYTES // 1024**2} MiB can be sent at once."
        raise Refusal("import_too_large", f"{words} On the server, `manage.py import_results` has no such limit.")


def add_uploads(imported: Import, files: Uploads) -> Stored:
    """Raises Refusal if the import has ended."""
    ordered = sorted(files, key=lambda file: in_order(file.name or ""))
    return add_found(imported, chain.from_iterable(map(_files_in, ordered)))


def _files_in(file: "UploadedFile[Any]") -> Iterator[Read | Refused | LeftOut]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, PurePosixPath(file.name or "").name or "upload")
        with path.open("wb") as copy:
            for chunk in file.chunks():
                copy.write(chunk)
        for each in read(path, LIMITS):
            yield replace(each, path=each.path.removeprefix(f"{PACKED}/"))
            del each  # otherwise its text is in memory while the next one is read
