"""A page for each built-in plan, and the list of all of them."""

import re
from pathlib import Path

from dev.docs.table import table
from webapp.plans.document import PlanDocument, import_plan
from webapp.plans.services import BUILTIN

DOCUMENTS = Path(__file__).parents[2] / "docs"
FOLDER = "how-to/plans"


def pages() -> dict[str, str]:
    """Markdown by path: the part of each page that follows from the plan, and `index.md`."""
    files = sorted(BUILTIN.glob("*.yaml"))
    documents = {file: import_plan(file.read_text(encoding="utf-8")) for file in files}
    found = {f"{FOLDER}/{file.stem}.md": _page(file, document) for file, document in documents.items()}
    return found | {f"{FOLDER}/index.md": _list(documents)}


def _page(file: Path, document: PlanDocument) -> str:
    own = DOCUMENTS / FOLDER / f"{file.stem}.md"
    title = "" if own.exists() else f"# {document.title}\n\n"
    return (
        f"{title}## About the plan\n\n{document.note}\n\n## The plan\n\n{_facts(document)}\n```yaml\n{_yaml(file)}```\n"
    )


def _yaml(file: Path) -> str:
    """The file without its note, which is text of the page."""
    return re.sub(r"^note: >\n(?:(?:  .*)?\n)*", "", file.read_text(encoding="utf-8"), flags=re.MULTILINE)


def _facts(document: PlanDocument) -> str:
    rows = [(part.name, ", ".join(part.on)) for part in document.parts]
    return f"Repeats: {document.repeats}. Order of the trials: {document.order}.\n\n" + table(("part", "runs on"), rows)


def _list(documents: dict[Path, PlanDocument]) -> str:
    rows = [
        (f"[{document.title}]({file.stem}.md)", _first_sentence(document.note)) for file, document in documents.items()
    ]
    return "## All built-in plans\n\n" + table(("plan", "what it measures"), sorted(rows))


def _first_sentence(note: str) -> str:
    return re.split(r"(?<=\.)\s", " ".join(note.split()), maxsplit=1)[0]
