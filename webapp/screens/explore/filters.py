"""The filters of a comparison in words, for pages without a filter form."""

from collections.abc import Iterator, Mapping

from webapp.analysis.dimensions import dimension
from webapp.analysis.question import KEYS, Pairs, split
from webapp.core.errors import Refusal
from webapp.results.reading.filter import FACTOR_PREFIX, is_on, read_filter

MAX_TITLES = 5  # in one list of imports
_SWITCHES = {"invalid": "invalid results included", "reference": "references included"}


def filters_in_words(pairs: Pairs, titles: Mapping[int, str]) -> str:
    """`Run 17, 18 · Import 3 “Old tests” · Block size 4k · references included`, or "none". `titles`: of imports."""
    return " · ".join(_words(pairs, titles)) or "none"


def _words(pairs: Pairs, titles: Mapping[int, str]) -> Iterator[str]:
    given: dict[str, list[str]] = {}
    for key, text in split(pairs)[0]:
        if key not in KEYS and text:
            given.setdefault(key, []).append(text)
    for key, texts in given.items():
        if key == "import":
            yield f"Import {_imports(texts, titles)}"
        elif key not in _SWITCHES:
            yield f"{_label(key.removeprefix(FACTOR_PREFIX))} {', '.join(texts)}"
        elif is_on(given, key):
            yield _SWITCHES[key]


def _imports(texts: list[str], titles: Mapping[int, str]) -> str:
    """Numbers with titles; only the texts for many imports, and if they cannot be read."""
    try:
        numbers = read_filter([("import", text) for text in texts]).imports
    except Refusal:
        numbers = ()
    if not 0 < len(numbers) <= MAX_TITLES:
        return ", ".join(texts)
    return ", ".join(f"{number} “{titles[number]}”" if number in titles else str(number) for number in numbers)


def _label(name: str) -> str:
    known = dimension(name)
    return known.label if known else name.capitalize()
