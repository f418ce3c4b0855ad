"""HTML of pages as tests compare it."""

import re

_KEPT = re.compile(r"""(<(pre|textarea|script|p(?= class="[^"]*note-text))\b.*?</\2>)""", re.DOTALL)
_TAG = re.compile(r"""(</?[a-z!](?:[^"'>]++|"[^"]*+"|'[^']*+')*+>)""")
_SPACE_AT_END = re.compile(r" +(/?>)$")
_INLINE = "a|b|code|em|kbd|small|span|strong|sup|time"
_NO_BLOCK = re.compile(rf"</?(?:{_INLINE}|canvas|progress|svg)\b")
_INLINE_END = re.compile(rf"</(?:{_INLINE})>$")


def without_line_breaks(html: str) -> str:
    """HTML as if its templates had no indentation, so that tests can search it for elements and sentences.

    As in a browser, white space is one space, and no space after another one or at the border of a block. `<pre>`,
    `<textarea>`, scripts and notes are kept as they are.
    """
    pieces = _KEPT.split(html)
    for place in range(0, len(pieces), 3):
        pieces[place] = _without_spaces_at_borders(" ".join(pieces[place].split()))
    return "".join(piece for place, piece in enumerate(pieces) if place % 3 < 2)


def _without_spaces_at_borders(html: str) -> str:
    parts = _TAG.split(html)  # text, tag, text, … text
    needless = True  # a space that comes next: after a space or a block, also when tags begin between them
    for place, part in enumerate(parts):
        if place % 2 == 0:
            parts[place] = text = part.removeprefix(" ") if needless else part
            needless = text.endswith(" ") if text else needless
        else:
            if part.endswith((" >", " />")):
                parts[place] = _SPACE_AT_END.sub(r"\1", part)
            if _NO_BLOCK.match(part):
                needless = needless and part[1] != "/"
            else:
                _strip_end(parts, place)
                needless = True
    _strip_end(parts, len(parts))
    return "".join(parts)


def _strip_end(parts: list[str], end: int) -> None:
    """Remove the space before `end`, where a block begins or ends, also when tags end between them."""
    for place in reversed(range(end)):
        if place % 2 == 0:
            parts[place] = parts[place].removesuffix(" ")
            if parts[place]:
                return
        elif not _INLINE_END.match(parts[place]):
            return
