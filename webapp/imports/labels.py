"""Labels from paths: `{host}/{controller}/{drive}/{rw}-{iodepth}-{numjobs}.json`.

A pattern is matched from the end of the path, so folders before it do not matter. In a pattern `{name}` is a label,
`*` is any text without `/`, `**` is any number of folders, and `[...]` is an optional part. The text between two labels
is searched from the right, so only the first label of a file name or folder name can contain it.
"""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from pathlib import PurePosixPath

import msgspec

from webapp.core.errors import Refusal
from webapp.imports.measurement import Measurement
from webapp.imports.values import ImportRefused
from webapp.plans.factors import FACTORS
from webapp.plans.values import Value, ValueRefused
from worker.contract.workload import Pattern

# Labels by hand: a line `name: text` each.


def read_labels(lines: str) -> dict[str, str]:
    """Raises Refusal for a line without a colon, a name or a text. Empty lines are skipped."""
    labels: dict[str, str] = {}
    for line in lines.splitlines():
        if not line.strip():
            continue
        name, _, text = map(str.strip, line.partition(":"))
        if not name or not text:
            raise Refusal("import_labels", f"`{line.strip()[:60]}` is not a label. Write name: text.")
        labels[name] = text
    return labels


# Names of fio and fio-plot for factors.
FACTOR_OF = {
    "rw": "pattern",
    "mode": "pattern",
    "bs": "block_size",
    "rwmixread": "read_percent",
    "threads": "numjobs",
    "queue_depth": "iodepth",
    "engine": "ioengine",
}
_IGNORED = ("kind", "job")  # of fio's logs
_FIELD = re.compile(r"\{([a-z][a-z0-9_]{0,39})\}|\*")
_ADJACENT = re.compile(r"\}[{*]|(?<!\*)\*\{")
_SIZE_FOLDER = re.compile(r"\d{1,6}[kKmM](?:i?[bB])?")
_MAX_PATTERN = 300
_MAX_OPTIONAL = 4
_MAX_FOLDERS = 64
_MAX_ANY_FOLDERS = 2

# A token is (literal in front, label or "").
_Segment = tuple[tuple[tuple[str, str], ...], str]


class Labelled(msgspec.Struct, frozen=True):
    """A measurement with the factors of its path, and the labels that are not factors."""

    measurement: Measurement
    labels: Mapping[str, str]


def match(pattern: str, path: str) -> dict[str, str] | None:
    """The labels of a path; None if it does not match. Raises ImportRefused for an invalid pattern."""
    folders = [part for part in path.split("/") if part][-_MAX_FOLDERS:]
    for blocks in _variants(pattern):
        if (labels := _match(blocks, folders)) is not None:
            return labels
    return None


@lru_cache(maxsize=64)
def _variants(pattern: str) -> tuple[tuple[tuple[str, ...], ...], ...]:
    """The pattern with and without each optional part, the longest first. Of each the segments between two `**`."""
    if len(pattern) > _MAX_PATTERN:
        raise ImportRefused(f"The pattern has {len(pattern)} characters, more than {_MAX_PATTERN}.")
    if pattern.count("[") != pattern.count("]") or pattern.count("[") > _MAX_OPTIONAL:
        raise ImportRefused(f"The pattern may have {_MAX_OPTIONAL} optional parts, each in [ and ].")
    if pattern.count("**") > _MAX_ANY_FOLDERS:
        raise ImportRefused(f"The pattern may have `**` at most {_MAX_ANY_FOLDERS} times.")
    variants = [pattern]
    for _ in range(pattern.count("[")):
        variants = [new for old in variants for new in _with_and_without(old)]
    unknown = [text for text in variants if re.search(r"[{}\[\]]", _FIELD.sub("", text))]
    if unknown:
        raise ImportRefused("The pattern has a bracket that is not understood. Labels are like {drive}.")
    if any(_ADJACENT.search(text) for text in variants):
        raise ImportRefused("The pattern has two labels without text between them. Put text such as `-` between them.")
    return tuple(map(_blocks, variants))


def _blocks(variant: str) -> tuple[tuple[str, ...], ...]:
    blocks: list[list[str]] = [[]]
    for segment in filter(None, variant.split("/")):
        if segment == "**":
            blocks.append([])
        else:
            blocks[-1].append(segment)
    return tuple(map(tuple, blocks))


def _with_and_without(pattern: str) -> tuple[str, str]:
    before, _, rest = pattern.partition("[")
    inside, _, after = rest.partition("]")
    return before + inside + after, before + after


def _match(blocks: Sequence[Sequence[str]], folders: Sequence[str]) -> dict[str, str] | None:
    """From the end; `**` takes as few folders as possible. No place is tried twice: if a block matches at its last
    possible place and those before it do not match, they do not match before an earlier place either."""
    end = len(folders)
    labels: dict[str, str] = {}
    for place, block in enumerate(reversed(blocks)):
        ends = range(end, -1, -1) if place else (end,)
        end, block_labels = next(_places(block, folders, ends), (-1, labels))
        if end < 0:
            return None
        labels = block_labels | labels
    return labels


def _places(block: Sequence[str], folders: Sequence[str], ends: Iterable[int]) -> Iterator[tuple[int, dict[str, str]]]:
    """Where the block matches, and its labels."""
    for end in ends:
        begin = end - len(block)
        if begin < 0:
            return
        labels: dict[str, str] = {}
        for segment, name in zip(reversed(block), reversed(folders[begin:end]), strict=True):
            here = _segment(segment, name)
            if here is None:
                break
            labels = here | labels
        else:
            yield begin, labels


def _segment(segment: str, name: str) -> dict[str, str] | None:
    """The labels of one file or folder name, read from the right without going back."""
    tokens, end = _tokens(segment)
    if not name.endswith(end):
        return None
    rest = name[: len(name) - len(end)] if end else name
    labels: dict[str, str] = {}
    for place, (literal, label) in reversed(list(enumerate(tokens))):
        if place == 0:
            if not rest.startswith(literal):
                return None
            text, rest = rest[len(literal) :], ""
        else:
            begin = rest.rfind(literal) if literal else max(0, len(rest) - 1)
            if begin < 0:
                return None
            text, rest = rest[begin + len(literal) :], rest[:begin]
        if label and (not text or labels.get(label, text) != text):
            return None
        if label:
            labels[label] = text
    return None if rest else labels


@lru_cache(maxsize=1024)
def _tokens(segment: str) -> _Segment:
    tokens, place = [], 0
    for field in _FIELD.finditer(segment):
        tokens.append((segment[place : field.start()], field[1] or ""))
        place = field.end()
    return tuple(tokens), segment[place:]


def apply(labels: Mapping[str, str], measured: Measurement) -> Labelled:
    """Take factors from the path that the file does not state. If both do, the file counts and a note says so."""
    factors: dict[str, Value] = dict(measured.factors)
    rest: dict[str, str] = {}
    notes: list[str] = []
    for name, text in labels.items():
        factor = FACTORS.get(FACTOR_OF.get(name, name))
        if factor is None:
            if name not in _IGNORED:
                rest[name] = text
            continue
        try:
            value = factor.values.parse(text)
        except ValueRefused:
            notes.append(f"The path says `{text[:60]}` for {factor.label}, which is not a valid value. It is ignored.")
            continue
        if factor.name not in factors or factor.name in measured.assumed:
            factors[factor.name] = value
            notes.append(f"{factor.label} is {factor.format(value)} according to the path.")
        elif factors[factor.name] != value:
            stated = factor.format(factors[factor.name])
            notes.append(
                f"{factor.label} is {stated} in the file and {factor.format(value)} in the path: the file counts."
            )
    if not notes:
        return Labelled(measured, rest)
    changed = msgspec.structs.replace(measured, factors=factors, notes=(*measured.notes, *notes))
    return Labelled(changed, rest)


_FILES = (
    "{rw}-iodepth-{iodepth}-numjobs-{numjobs}_{kind}.{job}.log",
    "{rw}-iodepth-{iodepth}-numjobs-{numjobs}.json",
    "{rw}-{iodepth}-{numjobs}.json",
    "{rw}-{bs}-{iodepth}-{numjobs}.json",
    "{rw}-{bs}.json",
    "{rw}_{bs}_{iodepth}_{numjobs}.json",
)
_FOLDERS = ("", "{drive}/", "{host}/{drive}/", "{host}/{controller}/{drive}/")
_SAMPLE = 1000


def suggest(paths: Iterable[str]) -> str:
    """A pattern for most of the paths, or "" if none of the usual ones fits. Folders are host, controller and drive."""
    sample = [path for path, _ in zip(paths, range(_SAMPLE), strict=False)]
    if not sample:
        return ""
    file = max(_FILES, key=lambda file_pattern: sum(_fits(file_pattern, path) for path in sample))
    matching = [path for path in sample if _fits(file, path)]
    if len(matching) * 2 < len(sample):
        return ""
    if all(_SIZE_FOLDER.fullmatch(PurePosixPath(path).parent.name) for path in matching) and "{bs}" not in file:
        file = f"{{bs}}/{file}"  # as bench-fio writes them
    depth = min(path.strip("/").count("/") for path in matching) - file.count("/")
    return _FOLDERS[min(depth, len(_FOLDERS) - 1)] + file


def _fits(pattern: str, path: str) -> bool:
    """Whether the pattern matches, with a pattern of fio and numbers where they belong."""
    labels = match(pattern, path)
    if labels is None or labels.get("rw") not in tuple(Pattern):
        return False
    return all(_is_value(name, text) for name, text in labels.items() if name in ("bs", "iodepth", "numjobs"))


def _is_value(name: str, text: str) -> bool:
    try:
        FACTORS[FACTOR_OF.get(name, name)].values.parse(text)
    except ValueRefused:
        return False
    return True
