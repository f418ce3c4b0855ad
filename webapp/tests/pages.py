"""HTML of pages as tests compare it."""

import re

_KEPT = re.compile(r"""(<(pre|textarea|script|p(?= class="[^"]*note-text))\b.*?</\2>)""", re.DOTALL)
_ATTRIBUTES = r"""(?:"[^"]*"|'[^']*'|[^"'>])*"""
_TAG = re.compile(rf"</?[a-z]{_ATTRIBUTES}>")
_IN_TAG = re.compile(r"""("[^"]*"|'[^']*')|\s+(?=/?>)|\s+""")
_INLINE = "a b code em kbd small span strong sup time"
_BLOCK = rf"</?(?!(?:{_INLINE.replace(' ', '|')}|canvas|progress|svg)\b)[a-z!]{_ATTRIBUTES}>"
_AFTER_SPACE = re.compile(rf"((?:^| |{_BLOCK})(?:<[a-z]{_ATTRIBUTES}>)*) ")
_BEFORE_BLOCK = re.compile(rf" ((?:</(?:{_INLINE.replace(' ', '|')})>)*(?:{_BLOCK}|$))")


def without_line_breaks(html: str) -> str:
    """HTML as if its templates had no indentation, so that tests can search it for elements and sentences.

    As in a browser, white space is one space, and no space after another one or at the border of a block. `<pre>`,
    `<textarea>`, scripts and notes are kept as they are.
    """

    def tag(match: re.Match[str]) -> str:
        return _IN_TAG.sub(lambda part: part[1] or ("" if part.end() >= len(match[0]) - 2 else " "), match[0])

    pieces = _KEPT.split(html)
    for place in range(0, len(pieces), 3):
        text, before = re.sub(r"\s+", " ", _TAG.sub(tag, pieces[place])), ""
        while text != before:
            text, before = _BEFORE_BLOCK.sub(r"\1", _AFTER_SPACE.sub(r"\1", text)), text
        pieces[place] = text
    return "".join(piece for place, piece in enumerate(pieces) if place % 3 < 2)
