"""Replace small files atomically."""

from contextlib import suppress
from pathlib import Path

UNFINISHED = ".new"  # suffix of a file that is being written


def write_whole(path: Path, data: bytes) -> None:
    """Replace the file's content: readers see either the old or the new content. Raises OSError.

    Makes the folder if needed. The new content may be lost in a power cut. After an error, the old content stays.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_suffix(UNFINISHED)
    try:
        fresh.write_bytes(data)
        fresh.replace(path)
    except OSError:
        with suppress(OSError):
            fresh.unlink()
        raise
