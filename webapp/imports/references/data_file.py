"""The text of a data file."""

from pathlib import Path

from webapp.imports.references.errors import ReferenceDamaged


def text_of(folder: Path, name: str) -> str:
    """Raises ReferenceDamaged."""
    path = folder / name
    if not path.is_file():
        raise ReferenceDamaged(f"{folder.name}/{name}", 1, "The file is missing.")
    content = path.read_bytes()
    try:
        return content.decode()
    except UnicodeDecodeError as error:
        line = content[: error.start].count(b"\n") + 1
        raise ReferenceDamaged(f"{folder.name}/{name}", line, "The text is not UTF-8.") from error
