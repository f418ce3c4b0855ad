"""Small files that are replaced as a whole."""

from pathlib import Path


def write_whole(path: Path, data: bytes) -> None:
    """Put `data` in the place of what is there: whoever reads it sees the one or the other. Raises OSError.

    Its folder is made where there is none. That it outlives a power cut is not seen to.
    """
    path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    fresh = path.with_suffix(".new")
    fresh.write_bytes(data)
    fresh.replace(path)
