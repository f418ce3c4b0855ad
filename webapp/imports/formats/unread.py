"""What a refusal says of a file that no format reads: the tool if it is known, otherwise what can be read."""

import re
from collections.abc import Iterable, Iterator

import msgspec


class Unread(msgspec.Struct, frozen=True):
    tool: str
    signature: re.Pattern[str]
    advice: str  # a sentence


_OF_FIO = (
    Unread(
        "fio before its results",
        re.compile(r"Jobs: \d{1,9} \(f=\d{1,9}\)|: \(g=\d{1,9}\): rw="),
        "The text ends before the results that fio prints at its end. Import the whole text.",
    ),
    Unread(
        "fio, of jobs without I/O",
        re.compile(r"\(groupid=\d{1,9}, jobs=\d{1,9}\): err="),
        "Its jobs have no line with IOPS and bandwidth: they did no I/O, or the text is cut off.",
    ),
    Unread(
        "fio's job files",
        re.compile(
            r"^\[[\w.-]{1,100}\][ \t]*\n(?:[^\[\n][^\n]{0,200}\n|\n){0,20}"
            r"(?:rw|readwrite|bs|blocksize|ioengine|iodepth|numjobs|stonewall|group_reporting)[ \t]*[=\n]",
            re.MULTILINE,
        ),
        "A job file has no results. It becomes a plan on the page Plans.",
    ),
)
_NEARLY = (
    Unread(
        "dd without its command",
        re.compile(r"\d bytes [^\n]{0,60}copied, [\d.]{1,12} s"),
        "Put the command on a line of its own, and the line with bytes and seconds right below it.",
    ),
)
_OTHERS = (
    Unread(
        "another test of sysbench than fileio",
        re.compile(r"^sysbench \d[^\n]{0,100}\n", re.MULTILINE),
        "Only `sysbench fileio run` measures storage.",
    ),
    Unread(
        "Phoronix Test Suite",
        re.compile(r"<PhoronixTestSuite>"),
        "Write the results of its storage tests as CSV, with named columns.",
    ),
)


def tools_in(text: str) -> Iterator[str]:
    """The tools whose outputs are in a text, but cannot be read."""
    return (each.tool for each in _OTHERS if each.signature.search(text))


def problem_of(head: str, tools: Iterable[str]) -> str:
    """Why no format reads a text that begins like this. `tools` are those whose outputs are read."""
    known = next((each for each in (*_OF_FIO, *_OTHERS, *_NEARLY) if each.signature.search(head)), None)
    if known:
        return f"This looks like {known.tool}. {known.advice}"
    return (
        f"The format of this file is not known. Outputs of {', '.join(tools)} and CSV with named columns can be "
        "imported. Let fio write its results with --output-format=json."
    )
