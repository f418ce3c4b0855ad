"""Queries of imports for pages, the API and commands."""

from collections.abc import Collection

from django.db.models import Count, F, Func, QuerySet, TextField, Window
from django.db.models.functions import RowNumber

from webapp.results.models import Import, ImportedFile, Result


def import_titles() -> dict[int, str]:
    """By number."""
    return dict(Import.objects.values_list("number", "title"))


def refused_by_reason(imported: Import) -> dict[str, int]:
    """Files that were left out, by reason, the most frequent first."""
    refused = imported.files.exclude(reason="").order_by().values_list("reason")
    return dict(refused.annotate(files=Count("id")).order_by("-files", "reason"))


def notes_of(imported: Import) -> dict[str, int]:
    """What the files that were read are told about, and of how many files it is true, the most frequent first."""
    files = (
        imported.files.exclude(notes=[])
        .order_by()
        .annotate(note=Func("notes", function="jsonb_array_elements_text", output_field=TextField()))
        .values_list("note")
    )
    return dict(files.annotate(files=Count("id")).order_by("-files", "note"))


def some_refused(imported: Import, reasons: Collection[str], most: int) -> dict[str, list[ImportedFile]]:
    """The first files that were left out for each of these reasons."""
    place = Window(RowNumber(), partition_by=F("reason"), order_by=F("id").asc())
    files_by_reason: dict[str, list[ImportedFile]] = {reason: [] for reason in reasons}
    for file in imported.files.filter(reason__in=reasons).alias(place=place).filter(place__lte=most).order_by("id"):
        files_by_reason[file.reason].append(file)
    return files_by_reason


def files_of(imported: Import, *, only_refused: bool = False) -> QuerySet[ImportedFile]:
    """In the order of reading."""
    files = imported.files.order_by("id")
    return files.exclude(reason="") if only_refused else files


def results_of(imported: Import) -> QuerySet[Result]:
    """In the order of its tests."""
    return Result.objects.filter(origin__imported=imported).order_by("origin__number", "direction")


def timed_tests(imported: Import) -> set[int]:
    """The numbers of its tests that have a time series."""
    return set(imported.origins.filter(series__isnull=False).values_list("number", flat=True))
