"""Files that were sent in one request, by a form, a script or the API."""

import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path, PurePosixPath
from typing import Any

from django.core.files.uploadedfile import UploadedFile
from msgspec.structs import replace

from webapp.core.errors import Refusal
from webapp.imports.reading import LeftOut, Limits, Read, Refused, read_in_turn
from webapp.imports.reading.order import in_order
from webapp.imports.services import add_found
from webapp.imports.storing import Stored
from webapp.results.models import Import

PACKED = "folder.tar"  # name of the archives that our script makes of folders; the paths inside count
MAX_BYTES = 512 * 1024**2  # of one request
LIMITS = Limits(total_bytes=2 * 1024**3, cpu_s=4.0)
MAX_REFUSED = 10_000  # files that became no results: they take CPU time and rows, and only a few bytes of an archive

Uploads = Iterable["UploadedFile[Any]"]


def check_size(files: Uploads) -> None:
    """Raises Refusal if there are too many bytes for one request."""
    if sum(file.size or 0 for file in files) > MAX_BYTES:
        words = f"At most {MAX_BYTES // 1024**2} MiB can be sent at once."
        raise Refusal("import_too_large", f"{words} On the server, `manage.py import_results` has no such limit.")


def add_uploads(imported: Import, files: Uploads) -> Stored:
    """Raises Refusal if the import has ended."""
    in_turn = sorted(files, key=lambda file: in_order(file.name or ""))
    return add_found(imported, _files_in(in_turn), max_refused=MAX_REFUSED)


def _files_in(files: Uploads) -> Iterator[Read | Refused | LeftOut]:
    for each in read_in_turn(_copies(files), LIMITS):
        yield replace(each, path=each.path.removeprefix(f"{PACKED}/"))
        del each  # otherwise its text is in memory while the next one is read


def _copies(files: Uploads) -> Iterator[tuple[str, Path]]:
    """Name and copy of each file, until the next one is taken. A name may be too long for a file system. Files with the
    same name come from different folders, so the second one gets a folder `2`."""
    seen: Counter[str] = Counter()
    for file in files:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder, "upload")
            with path.open("wb") as copy:
                for chunk in file.chunks():
                    copy.write(chunk)
            name = PurePosixPath(file.name or "").name or path.name
            seen[name] += 1
            yield name if seen[name] == 1 else f"{seen[name]}/{name}", path
