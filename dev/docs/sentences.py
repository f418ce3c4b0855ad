"""Sentences of the documentation that are longer than the limit of docs/how-to/writing.md."""

import re
from pathlib import Path

from dev.stack.state import REPOSITORY

DOCS = REPOSITORY / "docs"
CEILINGS = Path(__file__).with_name("long_sentences.txt")  # a page and its number of long sentences today
MAX_WORDS = 25
_CODE = re.compile(r"^```.*?^```$", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"!?\[([^]]*)\]\([^)]*\)")
_INLINE_CODE = re.compile(r"`[^`]*`")
_PARTS = re.compile(r"\n\s*\n|\n(?=\s*(?:[-*] |\d+\. |#|\|))|\|")  # paragraphs, list items, headings, cells of tables
_END = re.compile(r"(?<=[.!?:])[”)*]*\s+(?=[A-Z“`*(0-9])")


def long_sentences(markdown: str) -> list[str]:
    """Code and links count as the words that a reader sees; a piece of inline code is one word."""
    text = _LINK.sub(r"\1", _CODE.sub("", markdown))
    text = _INLINE_CODE.sub("Code", text)
    sentences = (sentence for part in _PARTS.split(text) for sentence in _END.split(part))
    return [
        " ".join(sentence.split()) for sentence in sentences if len(re.findall(r"\w[\w’'.,/-]*", sentence)) > MAX_WORDS
    ]


def counts() -> dict[str, int]:
    """The number of long sentences of each page that has some."""
    pages = {str(path.relative_to(DOCS)): long_sentences(path.read_text()) for path in sorted(DOCS.rglob("*.md"))}
    return {name: len(sentences) for name, sentences in pages.items() if sentences}


def ceilings() -> dict[str, int]:
    lines = (line.split() for line in CEILINGS.read_text().splitlines())
    return {name: int(number) for name, number in lines}
