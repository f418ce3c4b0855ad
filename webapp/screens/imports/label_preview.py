"""What a pattern for labels finds in paths, before anything is stored."""

from collections.abc import Sequence
from pathlib import PurePosixPath

from webapp.core.errors import Refusal
from webapp.imports import labels
from webapp.imports.formats.fio_log import log_name
from webapp.imports.measurement import Measurement
from webapp.plans.factors import FACTORS
from webapp.screens.imports.payloads import LabelPreview, PathLabels

SHOWN_PATHS = 8


def label_preview(pattern: str, paths: Sequence[str]) -> LabelPreview:
    """`paths` are also of logs: fio's logs join a test of their folder, so they need no match of their own."""
    suggested = labels.suggest(paths)
    try:
        found = {path: labels.match(pattern, path) for path in paths} if pattern else {}
    except Refusal as refusal:
        return LabelPreview(suggested=suggested, problem=refusal.message, matched=0, of=len(paths), logs=0, examples=())
    logs = _logs_of_tests([path for path, of_path in found.items() if of_path is None], paths)
    tests = {path: of_path for path, of_path in found.items() if path not in logs}
    return LabelPreview(
        suggested=suggested,
        problem="",
        matched=sum(of_path is not None for of_path in tests.values()),
        of=len(paths) - len(logs),
        logs=len(logs),
        examples=tuple(PathLabels(path=path, text=_in_words(tests[path])) for path in [*tests][:SHOWN_PATHS]),
    )


def _logs_of_tests(unmatched: Sequence[str], paths: Sequence[str]) -> set[str]:
    """Logs of fio in folders that have other files too."""
    folders = {PurePosixPath(path).parent for path in paths if log_name(path) is None}
    return {path for path in unmatched if log_name(path) is not None and PurePosixPath(path).parent in folders}


def _in_words(of_path: dict[str, str] | None) -> str:
    """`drive: PM9A3 · Queue depth: 32`; "" without a match."""
    if of_path is None:
        return ""
    labelled = labels.apply(of_path, Measurement(tool="", direction=None, factors={}))
    factors = labelled.measurement.factors
    words = [f"{factor.label}: {factor.format(factors[name])}" for name, factor in FACTORS.items() if name in factors]
    return " · ".join([*(f"{name}: {text}" for name, text in labelled.labels.items()), *words])
