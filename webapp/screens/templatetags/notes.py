"""Notes of people, written in Markdown: `{{ text|markdown }}` is safe HTML, `{{ text|plain }}` its start as text."""

from html import unescape

import nh3
from django import template
from django.utils.html import strip_tags
from django.utils.safestring import SafeString
from markdown_it import MarkdownIt

register = template.Library()

# CommonMark with tables and single line breaks; HTML in the text is shown as text.
_PARSER = MarkdownIt("commonmark", {"html": False, "breaks": True}).enable("table")
# Without images: a picture on another server would tell that server who reads the note.
_TAGS = {
    "a", "blockquote", "br", "code", "em", "h1", "h2", "h3", "h4", "h5", "h6", "hr", "li", "ol", "p", "pre", "strong",
    "table", "tbody", "td", "th", "thead", "tr", "ul",
}  # fmt: skip
_BEGINNING = 1000  # characters
_SCHEMES = {"http", "https", "mailto"}


@register.filter
def markdown(text: str) -> SafeString:
    """Parsed and then cleaned, so that a fault of the parser is harmless."""
    html = nh3.clean(
        _PARSER.render(text), tags=_TAGS, attributes={"a": {"href"}}, url_schemes=_SCHEMES,
        link_rel="noopener noreferrer nofollow",
    )  # fmt: skip
    return SafeString(html)


@register.filter
def plain(text: str) -> str:
    """The beginning of the note as plain text: without Markdown, tags and HTML entities. A list has many notes, and a
    long one takes seconds to parse."""
    return unescape(strip_tags(markdown(text[:_BEGINNING]))).strip()
