"""Labels by hand: a line `name: text` each."""

from webapp.core.errors import Refusal


def read_labels(lines: str) -> dict[str, str]:
    """Raises Refusal for a line without a colon, a name or a text. Empty lines are skipped."""
    found: dict[str, str] = {}
    for line in lines.splitlines():
        if not line.strip():
            continue
        name, _, text = map(str.strip, line.partition(":"))
        if not name or not text:
            raise Refusal("import_labels", f"`{line.strip()[:60]}` is not a label. Write name: text.")
        found[name] = text
    return found
