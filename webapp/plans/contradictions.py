"""Factors of a part that exclude each other. Pure."""

from collections.abc import Iterator, Mapping

from webapp.plans.document import Part
from webapp.plans.engines import engine_name
from webapp.plans.factors import ALTERNATIVES, AT_ONCE, HOSTS_AT_ONCE, stream_and_factor
from webapp.plans.grid_problem import GridProblem
from worker.recipes import DEFAULT_ENGINE

_RELATIVE = ("size_percent", "size_memory")


def contradictions(part: Part, texts: Mapping[str, str]) -> Iterator[GridProblem]:
    yield from _alternatives(texts)
    if HOSTS_AT_ONCE in texts:
        yield from _several_hosts(part, texts)
    if part.streams:
        yield from _several_streams(texts)


def _alternatives(texts: Mapping[str, str]) -> Iterator[GridProblem]:
    """Of the part, or of one of its streams."""
    for scope in dict.fromkeys(name.removesuffix(stream_and_factor(name)[1]) for name in texts):
        for one, other in ALTERNATIVES:
            if f"{scope}{one}" in texts and f"{scope}{other}" in texts:
                words = f"`{one}` and `{other}` exclude each other; remove one of them."
                yield GridProblem(f"{scope}{other}", words)


def _several_hosts(part: Part, texts: Mapping[str, str]) -> Iterator[GridProblem]:
    """Only fio waits for a common start."""
    several = (
        f"a trial uses several targets of one host or one target of several hosts; remove `{AT_ONCE}` or this factor."
    )
    problems = (
        (AT_ONCE in texts, several),
        ("layout" in texts, "a layout is built on pools of one host; remove this factor or `layout`."),
        (
            "stop" in texts,
            "no host knows the I/Os of all hosts, which a stop rule needs; remove `stop`.",
        ),
        (bool(part.streams), "streams with different workloads cannot use several hosts; remove this factor."),
        (engine_name(texts) != DEFAULT_ENGINE, "only fio can start on several hosts at once; remove this factor."),
    )
    for applies, words in problems:
        if applies:
            yield GridProblem(HOSTS_AT_ONCE, words)


def _several_streams(texts: Mapping[str, str]) -> Iterator[GridProblem]:
    if AT_ONCE in texts:
        yield GridProblem(
            AT_ONCE, "`at_once` runs one workload on several targets; use `streams_on` for streams, and remove it."
        )
    for name in texts:
        if stream_and_factor(name)[1] == "stop":
            yield GridProblem(name, "a stop rule looks at the sum of equal streams, and these differ; remove `stop`.")
        if stream_and_factor(name)[1] in _RELATIVE:
            yield GridProblem(name, "streams need a size in bytes; use `size`.")
