"""What tests read of a page."""

import pytest

from webapp.tests.pages import without_line_breaks


@pytest.mark.parametrize(
    ("html", "read"),
    [
        ("\n<p>\n  One\n  <b> two</b>\n</p>\n", "<p>One <b>two</b></p>"),
        ("<i> <em>a </em> </i>", "<i><em>a</em></i>"),
        ("<a\n  href=x\n>a</a> <br /> b", "<a href=x>a</a><br/>b"),
        ("a <svg> </svg> b", "a <svg></svg> b"),
        ("<td> 5 <sup>2 </sup> </td>", "<td>5 <sup>2</sup></td>"),
        ('<a title="a > b "> c</a> ', '<a title="a > b ">c</a>'),
        ("<pre> a\n b </pre> <p> c", "<pre> a\n b </pre><p>c"),
        ("1 < 2 and\n3 > 2", "1 < 2 and 3 > 2"),
    ],
)
def test_only_spaces_that_a_reader_sees_are_left(html: str, read: str) -> None:
    assert without_line_breaks(html) == read
