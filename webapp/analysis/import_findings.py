"""What the tables of imports show, stored once, and read by the page of the import and the overview.

`screens.explore.import_findings` makes it: a table has the comparison that Explore shows first. `store` is the only
writer.
"""

from collections import Counter
from datetime import datetime
from hashlib import sha256
from itertools import islice

import msgspec
from django.utils import timezone

from webapp.analysis.answer import CeilingMatch, Finding, FindingKind, Struct, once
from webapp.analysis.evidence import AT_A_LEVEL, Review, digest_of
from webapp.analysis.findings import importance
from webapp.analysis.models import EnteredCeiling, ImportFindingReview, ImportFindings
from webapp.analysis.run_answer import VERSION
from webapp.results.models import Import, ImportState


class Section(Struct, frozen=True, kw_only=True):
    """`query` is the address of its comparison in Explore."""

    title: str
    query: str
    findings: tuple[Finding, ...]
    sentences: tuple[str, ...]  # the findings first; ratios without a finding after them
    levels: tuple[str, ...] = ()  # on x, by the index that findings have


class Conclusions(Struct, frozen=True, kw_only=True):
    sections: tuple[Section, ...] = ()


class ImportFinding(Struct, frozen=True, kw_only=True):
    """A finding of an import."""

    imported: int  # its number
    title: str  # of the table, or of what is compared
    key: str  # the same for the same subject if the findings are made again
    kind: FindingKind
    sentence: str
    query: str  # of the comparison that shows it, as in the address of Explore or of `GET /api/v1/compare`
    size: float  # of the effect, as the absolute value of ln(ratio)
    single: bool  # from values that were measured once
    matches: tuple[CeilingMatch, ...] = ()
    review: Review | None = None

    @property
    def is_dismissed(self) -> bool:
        return self.review is not None and self.review.verdict == "dismissed"


def findings_in(conclusions: Conclusions, number: int) -> tuple[ImportFinding, ...]:
    """Of the import with the number, the most important first, without reviews."""
    places = [(section, finding) for section in conclusions.sections for finding in section.findings]
    places.sort(key=lambda place: importance(place[1]))
    subjects: Counter[str] = Counter()
    listed = []
    for section, finding in places:
        marks = [(mark.panel, mark.series) for mark in finding.marks]
        level = finding.level if finding.kind in AT_A_LEVEL else None
        subject = [section.title, section.query, finding.kind.value, finding.about, marks, level]
        key = digest_of(subject)
        subjects[key] += 1
        listed.append(
            ImportFinding(
                imported=number, title=section.title,
                key=key if subjects[key] == 1 else digest_of([*subject, subjects[key]]), kind=finding.kind,
                sentence=once(finding), query=section.query, size=finding.size, single=finding.single,
                matches=finding.matches,
            )
        )  # fmt: skip
    return tuple(listed)


def _seals_of(imports: list[Import]) -> dict[int, str]:
    """By number, what the stored conclusions must have been made from: the rules, the results of the import, the
    published tables, with which each import is compared, and entered ceilings."""
    published = Import.objects.exclude(slug=None).order_by("number").values_list("number", "digest")
    ceilings = EnteredCeiling.objects.values_list("kind", "name", "text")
    tables = msgspec.json.encode([list(published), list(ceilings)])
    return {imported.number: _seal(imported, tables) for imported in imports}


def _seal(imported: Import, tables: bytes) -> str:
    return sha256(b"%d %d %b" % (VERSION, imported.results_made, tables)).hexdigest()


def due() -> list[tuple[Import, str]]:
    """Ended imports with results whose conclusions are missing or outdated, the newest first, each with the seal of
    what is to be stored. Four queries."""
    ended = list(Import.objects.filter(state=ImportState.DONE, results_made__gt=0).order_by("-number"))
    made = dict(ImportFindings.objects.values_list("imported__number", "seal"))
    seals = _seals_of(ended)
    return [
        (imported, seals[imported.number]) for imported in ended if made.get(imported.number) != seals[imported.number]
    ]


def store(imported: Import, conclusions: Conclusions, seal: str) -> None:
    """Replace what is stored of the import."""
    values = {"seal": seal, "content": msgspec.to_builtins(conclusions), "made_at": timezone.now()}
    ImportFindings.objects.update_or_create(imported=imported, defaults=values)


def stored(imported: Import) -> Conclusions | None:
    """None until they are made, and of another version. Outdated ones are shown until they are made again."""
    content = ImportFindings.objects.filter(imported=imported).values_list("content", flat=True).first()
    return None if content is None else _read(content)


def newest(since: datetime, limit: int) -> list[tuple[Import, str]]:
    """The most important finding of each import of a person since then, without dismissed ones, the last import first.
    Two queries."""
    recent = ImportFindings.objects.filter(imported__slug=None, imported__created_at__gte=since)
    rows = recent.select_related("imported").order_by("-imported__created_at")
    made = [(row.imported, _read(row.content) or Conclusions()) for row in rows[:limit]]
    reviews = ImportFindingReview.objects.filter(imported__in=[imported for imported, _ in made])
    dismissed = set(reviews.filter(verdict=ImportFindingReview.Verdict.DISMISSED).values_list("imported_id", "key"))
    first = []
    for imported, conclusions in made:
        valid = (each for each in findings_in(conclusions, imported.number) if (imported.pk, each.key) not in dismissed)
        first += [(imported, each.sentence) for each in islice(valid, 1)]
    return first


def _read(content: object) -> Conclusions | None:
    try:
        return msgspec.convert(content, Conclusions)
    except msgspec.ValidationError:
        return None
