"""What the tables of imports show, stored once, and read by the page of the import and the overview.

`screens.explore.import_findings` makes it: a table has the comparison that Explore shows first. `store` is the only
writer.
"""

from collections import Counter
from datetime import datetime
from hashlib import sha256
from itertools import islice, zip_longest
from math import isclose

import msgspec
from django.utils import timezone
from msgspec import structs

from webapp.analysis.answer import CeilingMatch, Finding, FindingKind, Struct, once
from webapp.analysis.evidence import AT_A_LEVEL, Picture, Review, digest_of
from webapp.analysis.findings import WEAK, importance
from webapp.analysis.models import EnteredCeiling, ImportFindingReview, ImportFindings
from webapp.analysis.run_answer import VERSION
from webapp.results.models import Import, ImportState

SAME = 0.02  # relative difference of two values that are one


class Section(Struct, frozen=True, kw_only=True):
    """`query` is the address of its comparison in Explore."""

    title: str
    query: str
    findings: tuple[Finding, ...]
    sentences: tuple[str, ...]  # the findings first; ratios without a finding after them
    levels: tuple[str, ...] = ()  # on x, by the index that findings have
    pictures: tuple[Picture | None, ...] = ()  # of the findings, in their order


class Conclusions(Struct, frozen=True, kw_only=True):
    sections: tuple[Section, ...] = ()
    version: int = 0  # of the rules, where they are stored


class ImportFinding(Struct, frozen=True, kw_only=True):
    """A finding of an import."""

    imported: int  # its number
    title: str  # of the table, or of what is compared
    key: str  # the same for the same subject if the findings are made again
    kind: FindingKind
    sentence: str
    claim: str  # the sentence without its interval and its doubt
    certainty: str  # its interval and repeats; "" if the claim states them
    doubt: str  # what else may explain it: may be drift: …; ""
    query: str  # of the comparison that shows it, as in the address of Explore or of `GET /api/v1/compare`
    size: float  # of the effect, as the absolute value of ln(ratio)
    single: bool  # from values that were measured once
    repeats: bool = (
        False  # what a more important finding says: of one kind, metric and value, from another table or axis
    )
    matches: tuple[CeilingMatch, ...] = ()
    picture: Picture | None = None  # null if there are too many levels to draw, or the finding is not about series
    review: Review | None = None

    @property
    def is_dismissed(self) -> bool:
        return self.review is not None and self.review.verdict == "dismissed"


def findings_in(conclusions: Conclusions, number: int) -> tuple[ImportFinding, ...]:
    """Of the import with the number, the most important first, without reviews."""
    subjects: Counter[str] = Counter()
    listed = []
    for section, finding, picture, repeats in _ranked(conclusions):
        marks = [(mark.panel, mark.series) for mark in finding.marks]
        level = finding.level if finding.kind in AT_A_LEVEL else None
        subject = [section.title, section.query, finding.kind.value, finding.about, marks, level]
        key = digest_of(subject)
        subjects[key] += 1
        listed.append(
            ImportFinding(
                imported=number, title=section.title,
                key=key if subjects[key] == 1 else digest_of([*subject, subjects[key]]), kind=finding.kind,
                **once(finding).texts, query=section.query, size=finding.size, single=finding.single, repeats=repeats,
                matches=finding.matches, picture=picture,
            )
        )  # fmt: skip
    return tuple(listed)


def _ranked(conclusions: Conclusions) -> list[tuple[Section, Finding, Picture | None, bool]]:
    """Each with its picture, and whether it repeats one before. Rates come before latencies, which often say the
    same. Among equally certain ones, each kind of finding about a metric comes once before any of them comes again."""
    places = [
        (section, finding, picture)
        for section in conclusions.sections
        for finding, picture in zip_longest(section.findings, section.pictures)
    ]
    places.sort(key=lambda place: _importance(place[1]))
    topics: dict[tuple[FindingKind, str], list[Finding]] = {}
    ranked = []
    for section, finding, picture in places:
        before = topics.setdefault((finding.kind, _metric(finding)), [])
        repeats = any(_is_alike(finding, other) for other in before)
        certainty = finding.kind in WEAK, finding.single
        ranked.append((certainty, len(before), (section, finding, picture, repeats)))
        before.append(finding)
    ranked.sort(key=lambda each: each[:2])
    return [place for *_, place in ranked]


def _importance(finding: Finding) -> tuple[bool, bool, bool, int, float]:
    is_weak, single, place, size = importance(finding)
    return is_weak, single, _metric(finding).startswith("latency"), place, size


def _metric(finding: Finding) -> str:
    return finding.about.partition(":")[0]


def _is_alike(finding: Finding, other: Finding) -> bool:
    """Of two of one kind and metric: one value, such as a common limit along two axes."""
    if finding.value is None or other.value is None:
        return isclose(finding.size, other.size)
    return isclose(finding.value, other.value, rel_tol=SAME)


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
    content = msgspec.to_builtins(structs.replace(conclusions, version=VERSION))
    values = {"seal": seal, "content": content, "made_at": timezone.now()}
    ImportFindings.objects.update_or_create(imported=imported, defaults=values)


def stored(imported: Import) -> Conclusions | None:
    """None until they are made by these rules. Those made before a change of published tables or ceilings are shown
    until they are made again."""
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
    is_current = isinstance(content, dict) and content.get("version") == VERSION
    return msgspec.convert(content, Conclusions) if is_current else None
