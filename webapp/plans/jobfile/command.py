"""A command line of fio as the text of a job file.

As in fio: options before the first `--name` are for all jobs, each `--name` begins a job that has only these and its
own options, and the jobs run at the same time. One or two dashes, `--bs=4k` and `--bs 4k` mean the same. Several
commands run one after another.
"""

import re
import shlex
from collections.abc import Iterator, Sequence

from webapp.plans.jobfile.lines import JobFileError, JobProblem

_COMMAND = re.compile(r"(?:[$#>]\s+)?(?:(?:sudo|time|nice|exec)\s+)*(?:\S*/)?fio\s+['\"]?-")
_FLAGS = frozenset({
    "thread", "group_reporting", "time_based", "norandommap", "stonewall", "wait_for_previous", "exitall", "new_group",
    "minimal", "readonly", "fill_device", "refill_buffers", "zero_buffers", "append-terse", "bandwidth-log",
})  # fmt: skip
_SECTION = re.compile(r"^\s*\[", re.MULTILINE)
_NEXT = (";", "&&", "||", "\n")


def is_command(text: str) -> bool:
    """Whether the text begins with a call of fio, perhaps after a prompt or sudo, and has no section."""
    return bool(_COMMAND.match(text.strip())) and not _SECTION.search(text)


def job_file_of(command: str) -> str:
    """Raises JobFileError."""
    try:
        words = list(_words(command))
    except ValueError as error:
        raise JobFileError([JobProblem(0, "", f"The command cannot be read: {error}.")]) from error
    sections: list[str] = []
    for call in _calls(words):
        sections += _sections(call, first=not sections)
    return "\n".join(sections) + "\n"


def _words(command: str) -> Iterator[str]:
    """The words of the shell. Raises ValueError."""
    for line in command.strip().replace("\\\r\n", " ").replace("\\\n", " ").splitlines():
        reader = shlex.shlex(re.sub(r"^\s*[$#>]\s+", "", line), posix=True, punctuation_chars="|;&<>")
        reader.whitespace_split = True
        reader.commenters = "#"
        yield from reader
        yield "\n"


def _calls(words: Sequence[str]) -> Iterator[list[str]]:
    """The arguments of each call of fio, without what a shell does with its output."""
    call: list[str] = []
    calls = [call]
    for word in words:
        if word in _NEXT:
            call = []
            calls.append(call)
        else:
            call.append(word)
    for each in filter(None, calls):
        place = next((index for index, word in enumerate(each) if word.rpartition("/")[2] == "fio"), None)
        if place is None:
            raise JobFileError([JobProblem(0, "", f"`{' '.join(each)[:100]}` is not a call of fio. Remove it.")])
        end = next((index for index, word in enumerate(each) if not word.strip("|<>&")), len(each))
        yield each[place + 1 : end - (each[end - 1] in ("1", "2") and end < len(each))]  # `2>` is two words


def _sections(arguments: Sequence[str], *, first: bool) -> list[str]:
    common: list[str] = []
    jobs: list[tuple[str, list[str]]] = []
    lines = common
    for option, value in _options(arguments):
        if option == "name" and not value.startswith("global"):
            lines = []
            jobs.append((re.sub(r"[\[\]]", " ", value).strip()[:100] or "job", lines))
        elif option == "name":
            lines = common
        else:
            lines.append(f"{option}={value}" if value else option)
    if not jobs:
        raise JobFileError([JobProblem(0, "", "The command has no `--name`, which begins a job.")])
    begin = [] if first else ["stonewall"]
    return [
        "\n".join([f"[{name}]", *(begin if number == 0 else []), *common, *options])
        for number, (name, options) in enumerate(jobs)
    ]


def _options(arguments: Sequence[str]) -> Iterator[tuple[str, str]]:
    """Each option with its value; "" without one."""
    words = list(arguments)
    while words:
        word = words.pop(0)
        option, equals, value = word.lstrip("-").partition("=")
        if not word.startswith("-") or not option:
            problem = f"The command names the job file `{word}`. Import the text of that file."
            raise JobFileError([JobProblem(0, "", problem)])
        if not equals and option not in _FLAGS and words and not words[0].startswith("-"):
            value = words.pop(0)
        yield option, value
