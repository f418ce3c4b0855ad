"""Replace small files atomically."""

from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Replace the file's content: readers see either the old or the new content. Raises OSError.

    Makes the folder if needed. The new content may be lost in a power cut.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(data)
    fresh.replace(path)
