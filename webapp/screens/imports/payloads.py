"""Data that the pages of imports send to their scripts; `frontend/src/payloads/imports.ts` has the same types."""

from webapp.screens.payloads import Payload


class Begun(Payload, frozen=True, kw_only=True):
    """An import without files: where its files are sent, where it is ended, and its page."""

    files_url: str
    end_url: str
    url: str


class Added(Payload, frozen=True, kw_only=True):
    """What became of the files of one request."""

    files: int
    results: int
    refused: int


class ImportProblem(Payload, frozen=True, kw_only=True):
    """Why a request was refused."""

    problem: str


class PathLabels(Payload, frozen=True, kw_only=True):
    """The labels that the pattern finds in one path: `drive: PM9A3 · Queue depth: 32`; "" if it does not match."""

    path: str
    text: str


class ColumnPreview(Payload, frozen=True, kw_only=True):
    """Columns of a CSV file, none if it is another file, and its first row as it is read: `read · IOPS: 10.2k`; or why
    the row is not read."""

    columns: tuple[str, ...]
    problem: str
    row: str


class LabelPreview(Payload, frozen=True, kw_only=True):
    """`problem` says why the pattern is not valid, "" otherwise."""

    suggested: str  # a pattern for these paths, "" if none of the usual ones fits
    problem: str
    matched: int  # paths that the pattern matches
    of: int
    logs: int  # of fio, which are not in `of`: each joins a test of its folder
    examples: tuple[PathLabels, ...]
