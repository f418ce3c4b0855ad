"""The runs of fio in a text: each prints one object, or with --status-interval one at each interval.

The last object of a run has its result. Runs that were appended to one file look like the intervals of one run, because
the counters of an interval are never below those of the interval before. What tells them apart:

- Another version, other jobs or other options are another run.
- A job that has ended has exactly the same values in all later objects of its run.
- Another run began, at `timestamp` - `elapsed`, after this one had ended. `elapsed` is up to 1.1 s too long.
- Counters of one run do not go back, except at the end of `ramp_time`.
- An object of the same run shows a longer runtime than the time since the object before. A later run began after that
  object was printed, so its runtime is shorter.

If nothing of this is known for sure, both are objects of one run.
"""

import re
from collections.abc import Iterator
from itertools import pairwise

import msgspec

from webapp.imports.errors import ImportRefused
from webapp.imports.formats.fio_json.document import Document, Flow, Job, decode
from webapp.imports.values import MAX_CHARACTERS

MAX_BRACKETS = 250_000  # fio prints one for about 160 characters
MAX_VALUES = 1_000_000  # more of them take more than 200 MB of memory
_BEGIN = re.compile(r"^[>$#|]?\{", re.MULTILINE)  # inner objects are indented; a sign of a shell may stand before it
_END = re.compile(r"^\}", re.MULTILINE)
_NOT_JSON = re.compile(r"(:\s*)[+-]?(?:nan|inf(?:inity)?)\b", re.IGNORECASE)
_TOO_LONG_S = 1.5  # of `elapsed`


class Run(msgspec.Struct, frozen=True):
    document: Document  # its last object
    notes: tuple[str, ...] = ()  # about the objects of the text


class _Objects(msgspec.Struct):
    last: Document
    count: int = 1
    cut_off: bool = False  # an object after `last` is cut off or damaged


def find(text: str) -> list[Run]:
    """The runs in a text that may contain other lines. Raises ImportRefused."""
    if len(text) > MAX_CHARACTERS:
        raise ImportRefused(f"The text has {len(text):,} characters, more than {MAX_CHARACTERS:,}. Split the file.")
    if text.count("{") + text.count("[") > MAX_BRACKETS:
        raise ImportRefused(f"The JSON has more than {MAX_BRACKETS:,} objects and lists. Split the file.")
    if text.count(",") > MAX_VALUES:
        raise ImportRefused(f"The JSON has more than {MAX_VALUES:,} values. Split the file.")
    try:
        document = decode(text)
    except msgspec.MsgspecError:
        return _with_notes(_objects(_NOT_JSON.sub(r"\g<1>null", text)))
    if not document.is_result:
        raise ImportRefused("The JSON has no `jobs` and no `client_stats`: it is not a result of fio.")
    return [Run(document)]


def _objects(text: str) -> list[_Objects]:
    """Of each run. Raises ImportRefused."""
    runs: list[_Objects] = []
    problem = "This is not a result of fio: no line begins with `{`."
    for part in _parts(text):
        try:
            document = decode(part)
        except msgspec.ValidationError as error:
            raise ImportRefused(f"This is not a result of fio: {str(error)[:200]}.") from error
        except msgspec.DecodeError as error:
            problem = f"The last JSON object is damaged or truncated: {str(error)[:200]}."
            if runs:
                runs[-1].cut_off, runs[-1].count = True, runs[-1].count + 1
            continue
        if not document.is_result:
            problem = "The JSON has no `jobs` and no `client_stats`: it is not a result of fio."
        elif runs and not is_new_run(runs[-1].last, document):
            runs[-1] = _Objects(document, runs[-1].count + 1)
        else:
            runs.append(_Objects(document))
    if not runs:
        raise ImportRefused(problem)
    return runs


def _parts(text: str) -> Iterator[str]:
    begins = [match.end() - 1 for match in _BEGIN.finditer(text)]
    for begin, after in pairwise([*begins, len(text)]):
        end = _END.search(text, begin, after)
        yield text[begin : (end.start() if end else text.rfind("}", begin, after)) + 1]


def is_new_run(before: Document, after: Document) -> bool:
    """Whether an object is of another run than the object before it in the file."""
    if _identity(before) != _identity(after):
        return True
    pairs = [*zip(_flows(before), _flows(after), strict=False)]
    if any(earlier == later for earlier, later in pairs if earlier.active):
        return False
    has_ramp = any("ramp_time" in options for options in (after.global_options, *(job.options for job in _jobs(after))))
    if not has_ramp and any(_goes_back(earlier, later) for earlier, later in pairs):
        return True
    apart = _are_apart(before, after)
    if apart is not None:
        return apart
    return not has_ramp and _is_too_short(before, after)


def _jobs(document: Document) -> list[Job]:
    """Clients print in any order."""
    return document.jobs or sorted(document.client_stats, key=lambda job: (job.hostname, job.jobname))


def _flows(document: Document) -> list[Flow]:
    return [flow for job in _jobs(document) for flow in (job.read, job.write, job.trim, job.mixed)]


def _identity(document: Document) -> object:
    jobs = [(job.jobname, job.groupid, job.hostname, job.options) for job in _jobs(document)]
    return document.version, document.global_options, jobs


def _are_apart(before: Document, after: Document) -> bool | None:
    """Whether one of two runs began after the other one had ended. None if their times are not known or too short."""
    ends_s = [_time_s(document) for document in (before, after)]
    lengths_s = [_elapsed_s(document) for document in (before, after)]
    too_long_s = _TOO_LONG_S if before.timestamp_ms and after.timestamp_ms else _TOO_LONG_S + 1
    if ends_s[0] is None or ends_s[1] is None or lengths_s[0] is None or lengths_s[1] is None:
        return None
    if lengths_s[0] < 2 * too_long_s:
        return None
    return ends_s[1] - lengths_s[1] >= ends_s[0] - too_long_s or ends_s[0] - lengths_s[0] >= ends_s[1] - too_long_s


def _goes_back(before: Flow, after: Flow) -> bool:
    """Whether a counter that only grows is smaller."""
    return after.io_bytes < before.io_bytes or after.runtime < before.runtime


def _is_too_short(before: Document, after: Document) -> bool:
    """Whether the runtime is shorter than the time since the object before."""
    step_ms = 100 if before.timestamp_ms and after.timestamp_ms else 1000
    times_s = [_time_s(document) for document in (before, after)]
    if _runtime_ms(before) <= step_ms or times_s[0] is None or times_s[1] is None:
        return False
    return _runtime_ms(after) <= 1000 * (times_s[1] - times_s[0])


def _runtime_ms(document: Document) -> int:
    """Of all groups of jobs, which run one after another."""
    longest: dict[int | None, int] = {}
    for job in _jobs(document):
        runtime = max(flow.runtime for flow in (job.read, job.write, job.trim, job.mixed))
        longest[job.groupid] = max(longest.get(job.groupid, 0), runtime)
    return sum(longest.values())


def _time_s(document: Document) -> float | None:
    return document.timestamp_ms / 1000 if document.timestamp_ms else document.timestamp


def _elapsed_s(document: Document) -> int | None:
    return max((job.elapsed for job in _jobs(document) if job.elapsed is not None), default=None)


def _with_notes(runs: list[_Objects]) -> list[Run]:
    return [Run(run.last, tuple(_notes(run, number, len(runs)))) for number, run in enumerate(runs, start=1)]


def _notes(run: _Objects, number: int, runs: int) -> Iterator[str]:
    if runs > 1:
        yield f"The file has {runs} runs of fio. This is run {number}."
    has = f"{'This run' if runs > 1 else 'The file'} has {run.count} JSON objects"
    if run.cut_off:
        yield (
            f"{has}, and the last one is cut off or damaged. The one before counts: if they are of one test, as with "
            "--status-interval, its values are of the time until then, not of the whole test."
        )
    elif run.count > 1:
        yield f"{has}, as with --status-interval: the last one counts."
