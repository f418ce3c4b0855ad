"""What the tables of imports show, stored once, and read by the page of the import and the overview.

`screens.explore.import_findings` makes it: a table has the comparison that Explore shows first. `store` is the only
writer.
"""

from datetime import datetime
from hashlib import sha256

import msgspec
from django.utils import timezone

from webapp.analysis.answer import Finding, Struct
from webapp.analysis.models import EnteredCeiling, ImportFindings
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
    """`first`: the most important findings of all sections, as sentences."""

    first: tuple[str, ...] = ()
    sections: tuple[Section, ...] = ()


def _seals_of(imports: list[Import]) -> dict[int, str]:
    """By number, what the stored conclusions must have been made from: the rules, the results of the import, the
    published tables, with which each import is compared, and entered ceilings."""
    published = Import.objects.exclude(slug=None).order_by("number").values_list("number", "digest")
    ceilings = EnteredCeiling.objects.values_list("kind", "name", "text")
    tables = msgspec.json.encode([list(published), list(ceilings)])
    return {one.number: _seal(one, tables) for one in imports}


def _seal(imported: Import, tables: bytes) -> str:
    return sha256(b"%d %d %b" % (VERSION, imported.results_made, tables)).hexdigest()


def due() -> list[tuple[Import, str]]:
    """Ended imports with results whose conclusions are missing or outdated, the newest first, each with the seal of
    what is to be stored. Four queries."""
    ended = list(Import.objects.filter(state=ImportState.DONE, results_made__gt=0).order_by("-number"))
    made = dict(ImportFindings.objects.values_list("imported__number", "seal"))
    seals = _seals_of(ended)
    return [(one, seals[one.number]) for one in ended if made.get(one.number) != seals[one.number]]


def store(imported: Import, conclusions: Conclusions, seal: str) -> None:
    """Replace what is stored of the import."""
    values = {"seal": seal, "content": msgspec.to_builtins(conclusions), "made_at": timezone.now()}
    ImportFindings.objects.update_or_create(imported=imported, defaults=values)


def stored(imported: Import) -> Conclusions | None:
    """None until they are made, and of another version. Outdated ones are shown until they are made again."""
    content = ImportFindings.objects.filter(imported=imported).values_list("content", flat=True).first()
    return None if content is None else _read(content)


def newest(since: datetime, limit: int) -> list[tuple[Import, str]]:
    """The most important finding of each import of a person since then, the last import first. One query."""
    recent = ImportFindings.objects.filter(imported__slug=None, imported__created_at__gte=since)
    rows = recent.select_related("imported").order_by("-imported__created_at")
    read = ((row.imported, _read(row.content)) for row in rows[:limit])
    return [(imported, made.first[0]) for imported, made in read if made and made.first]


def _read(content: object) -> Conclusions | None:
    try:
        return msgspec.convert(content, Conclusions)
    except msgspec.ValidationError:
        return None
