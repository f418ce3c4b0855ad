"""What the published tables show, as their authors concluded it, stands on the page of each import without being
asked. The page of the documentation that lists it is checked here, too."""

from math import exp
from pathlib import Path

import pytest

from webapp.analysis.answer import Finding
from webapp.analysis.findings.tests.conclusions import CONCLUSIONS, Conclusion, Found, Missing, Stated
from webapp.analysis.import_findings import Section
from webapp.imports.references.reading import load_references
from webapp.results.models import Import
from webapp.screens.explore.import_findings import sections_of

PAGE = Path(__file__).parents[4] / "docs/understanding/published-conclusions.md"
FEWEST_FOUND = 60


@pytest.mark.django_db
def test_the_conclusions_of_the_published_tables_are_found() -> None:
    load_references()
    shown = {one.slug: sections_of(one) for one in Import.objects.exclude(slug=None)}
    assert {one.reference for one in CONCLUSIONS} == shown.keys()
    sentences = {one: _sentence(one, shown[one.reference]) for one in CONCLUSIONS}
    missed = [one for one, sentence in sentences.items() if not sentence and not isinstance(one.page, Missing)]
    assert not missed, [(one.reference, one.author, _all(shown[one.reference])) for one in missed]
    found = [one for one, sentence in sentences.items() if sentence]
    assert len(found) >= FEWEST_FOUND
    lines = "\n".join(_line(one, sentence) for one, sentence in sentences.items())
    summary = f"{len(found)} of {len(CONCLUSIONS)} conclusions are stated."
    documented = PAGE.read_text()
    assert summary in documented, f"{summary}\n\n{lines}"
    assert lines in documented, f"The table of {PAGE.name} must be:\n\n{lines}"


def _sentence(one: Conclusion, sections: tuple[Section, ...]) -> str:
    """The sentence of the page that says it; "" without one."""
    if isinstance(one.page, Found):
        page = one.page
        known = ((each, section) for section in sections for each in section.findings)
        return next((each.sentence for each, section in known if _is(page, each, section)), "")
    if isinstance(one.page, Stated):
        words = one.page.words
        known_words = (sentence for section in sections for sentence in section.sentences)
        return next((sentence for sentence in known_words if all(word in sentence for word in words)), "")
    return ""


def _is(page: Found, each: Finding, section: Section) -> bool:
    level = section.levels[each.level] if each.level is not None and section.levels else ""
    return (
        each.kind is page.kind
        and all(word in each.sentence for word in page.words)
        and (page.factor is None or exp(each.size) == pytest.approx(page.factor, rel=0.03))
        and (page.value is None or each.value == pytest.approx(page.value, rel=0.03))
        and (page.level is None or level == page.level)
    )


def _line(one: Conclusion, sentence: str) -> str:
    if isinstance(one.page, Missing):
        return f"| `{one.reference}` | {one.author} | not stated: {one.page.why} |"
    return f"| `{one.reference}` | {one.author} | {sentence} |"


def _all(sections: tuple[Section, ...]) -> list[str]:
    return [sentence for section in sections for sentence in section.sentences]
