"""The texts of a part's factors, and their levels. Pure."""

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from webapp.core.errors import nearest
from webapp.plans import levels
from webapp.plans.document import Part, PlanDocument
from webapp.plans.engines import ENGINE, ENGINES, engine_name
from webapp.plans.factors import (
    ALTERNATIVES,
    BEFORE,
    BESIDE,
    FACTORS,
    LAYOUT,
    OF_STREAMS,
    STREAMS,
    STREAMS_ON,
    FactorKind,
    factor_of,
    name_layout,
    of_other_engines,
    stream_and_factor,
)
from webapp.plans.points import slowest_first, with_defaults
from webapp.plans.streams import ALONE, EACH, TOGETHER, of_stream, overruled
from webapp.plans.values import Value
from worker.contract.workload import TargetKind
from worker.recipes import DEFAULT_ENGINE

# The levels of a part with several streams: its texts, problems and defaults. Pure.

# A problem in the text of a part.

# Codes of the problems of a plan
TOO_LARGE = "plan_too_large"  # over a limit of levels, combinations, points or trials
PLAN_PROBLEM = "plan_problem"  # all others


@dataclass(frozen=True)
class GridProblem:
    """`field` is the factor with the problem, `on` for the kinds of target, `rules`, `streams`, or "" for the part as a
    whole. The factor of a stream has the stream's name: `reader.iodepth`. The problems of a part's field `before` have
    the name of that factor. `code` is TOO_LARGE, or "" for all other problems."""

    field: str
    message: str
    code: str = ""


StreamLevels = dict[str, tuple[Value, ...]]
_SCOPES = {name.partition(".")[0] for name, factor in FACTORS.items() if factor.kind is FactorKind.SETTING}
RESERVED_NAMES = frozenset({ALONE, TOGETHER, *_SCOPES})


def stream_texts(part: Part, texts: Mapping[str, str]) -> dict[str, str]:
    """The texts of a part with the factors of its streams: `reader.iodepth`.

    A factor that one stream names belongs to each stream that it applies to; the text of the part is then its default.
    """
    if not part.streams:
        return dict(texts)
    named = {name for stream in part.streams for name in stream.factors}
    texts_of_streams = {STREAMS: TOGETHER} | {name: text for name, text in texts.items() if name not in named}
    for stream in part.streams:
        left_out = overruled(stream.factors) | of_other_engines(engine_name({**texts, **stream.factors}))
        inherited = {name: text for name, text in texts.items() if name in named and name not in left_out}
        texts_of_streams |= {f"{stream.name}.{name}": text for name, text in (inherited | stream.factors).items()}
    return texts_of_streams


def stream_engine(texts: Mapping[str, str], stream: str) -> str:
    """The engine of a stream of a part, or of the part for the stream ""."""
    return engine_name({ENGINE: texts.get(f"{stream}.{ENGINE}", texts.get(ENGINE, DEFAULT_ENGINE))})


def stream_problems(part: Part, texts: Mapping[str, str]) -> list[GridProblem]:
    """Problems of a part's streams, besides those of levels."""
    names = [stream.name for stream in part.streams]
    unknown = {stream for stream, _ in map(stream_and_factor, texts) if stream and stream not in names}
    problems = [GridProblem("streams", f"there is no stream `{name}` in this part.") for name in sorted(unknown)]
    if not part.streams:
        words = "this part has no streams; remove it, or add streams."
        return problems + [GridProblem(name, words) for name in (STREAMS, STREAMS_ON) if name in texts]
    of_streams = [problem for name in names for problem in _problems_of_stream(texts, name)]
    return [
        *problems, *_names(names), *_of_the_trial(part), *_of_no_stream(part, texts), *of_streams,
        *_several_engines(texts), *_array_actions(names, texts), *_layouts(names, texts),
    ]  # fmt: skip


def _several_engines(texts: Mapping[str, str]) -> Iterator[GridProblem]:
    for name, text in texts.items():
        if stream_and_factor(name)[1] == ENGINE and "," in text:
            yield GridProblem(name, "a stream has one engine; create one stream per engine.")


def _array_actions(names: Sequence[str], texts: Mapping[str, str]) -> Iterator[GridProblem]:
    acting = [name for name in names if ENGINES[stream_engine(texts, name)].WORKLOAD.needs_array]
    if len(acting) > 1:
        yield GridProblem("streams", f"an array can run only one action at a time: remove the stream {acting[1]}.")
    if acting and len(acting) == len(names):
        yield GridProblem("streams", "an array action runs beside a workload; add a stream with a workload.")
    if acting and LAYOUT not in texts:
        yield GridProblem("", "an array action needs the factor `layout`, e.g. `raid1 x2`.")
    if acting and EACH in texts.get(STREAMS_ON, ""):
        words = f"an array action and the streams beside it use the same array; remove the level `{EACH}`."
        yield GridProblem(STREAMS_ON, words)


def _layouts(names: Sequence[str], texts: Mapping[str, str]) -> Iterator[GridProblem]:
    """Layouts of single streams: each on a target of its own."""
    own = [f"{name}.{LAYOUT}" for name in names if f"{name}.{LAYOUT}" in texts]
    if own and texts.get(STREAMS_ON, "").strip() != EACH:
        words = f"streams on one target share its layout; set `{STREAMS_ON}` to `{EACH}`, or give the part one layout."
        yield GridProblem(own[0], words)
    if own and len(own) < len(names):
        missing = next(name for name in names if f"{name}.{LAYOUT}" not in texts)
        words = f"the stream {missing} has no `{LAYOUT}`; if one stream has a layout, each stream needs one."
        yield GridProblem("streams", words)


def _names(names: Sequence[str]) -> Iterator[GridProblem]:
    if len(names) == 1:
        yield GridProblem("streams", "one stream needs no name: move its factors to the part, or add a stream.")
    for name, count in Counter(names).items():
        if count > 1:
            yield GridProblem("streams", f"two streams are called {name}. Rename one of them.")
        if name in RESERVED_NAMES:
            yield GridProblem("streams", f"a stream cannot be called {name}. Rename it.")


def _of_no_stream(part: Part, texts: Mapping[str, str]) -> Iterator[GridProblem]:
    engines = {stream_engine(texts, stream.name) for stream in part.streams}
    for name in part.factors:
        if all(name in of_other_engines(engine) for engine in engines):
            yield GridProblem(name, f"`{name}` is not a factor of any stream's engine; remove it.")


def _problems_of_stream(texts: Mapping[str, str], stream: str) -> Iterator[GridProblem]:
    engine = stream_engine(texts, stream)
    texts_of_stream = {
        name: text for of, name, text in ((*stream_and_factor(n), t) for n, t in texts.items()) if of == stream
    }
    for name in texts_of_stream:
        if name in of_other_engines(engine):
            yield GridProblem(f"{stream}.{name}", f"`{name}` is not a factor of {ENGINES[engine].LABEL}; remove it.")
    required = ENGINES[engine].REQUIRED
    if required not in of_stream(texts, stream, engine):
        yield GridProblem(
            f"{stream}.{ENGINE}",
            f"`{required}` of the stream {stream} is missing, e.g. `{FACTORS[required].example}`.",
        )


def _of_the_trial(part: Part) -> Iterator[GridProblem]:
    """Factors in a stream that apply to the whole trial, such as settings of the host."""
    for stream in part.streams:
        for name in stream.factors:
            if name in FACTORS and name not in OF_STREAMS:
                words = f"`{name}` cannot differ between streams; move it to the factors of the part."
                yield GridProblem(f"{stream.name}.{name}", words)


def with_running(part: Part, parsed: StreamLevels) -> tuple[StreamLevels, list[GridProblem]]:
    """The levels of `streams` as names of streams: `together` and `alone` depend on the part."""
    names = [stream.name for stream in part.streams]
    levels: list[Value] = []
    problems = []
    for text in map(str, parsed.get(STREAMS, ())):
        if text == ALONE:
            levels += names
            continue
        wanted = names if text == TOGETHER else [name.strip() for name in text.split("+")]
        if unknown := [name for name in wanted if name not in names]:
            problems.append(GridProblem(STREAMS, f"`{unknown[0]}` is not a stream of this part."))
        levels.append(BESIDE.join(name for name in names if name in wanted))
    return parsed | {STREAMS: tuple(dict.fromkeys(levels))}, problems


def complete(
    part: Part, parsed: StreamLevels, texts: Mapping[str, str], *, drop_caches: bool, sequence: Sequence[str] = ()
) -> StreamLevels:
    """The levels with the defaults of missing factors. They belong to a stream if the streams have different engines,
    or if another stream names the factor."""
    engines = {stream.name: stream_engine(texts, stream.name) for stream in part.streams}
    named = {factor for stream, factor in map(stream_and_factor, parsed) if stream}
    full = dict(parsed) | {STREAMS_ON: parsed.get(STREAMS_ON, ("same",))}
    for stream, engine in engines.items():
        of_this_stream = of_stream(parsed, stream, engine)
        for name, defaults in with_defaults(of_this_stream | {ENGINE: (engine,)}, drop_caches=drop_caches).items():
            if name in of_this_stream:
                continue
            shared = name not in named and (len({*engines.values()}) == 1 or name not in OF_STREAMS)
            full.setdefault(name if shared else f"{stream}.{name}", defaults)
    return slowest_first(full, sequence)


# Kinds of target that a part may name. Pools are used by parts with a layout.
NAMED_KINDS = (TargetKind.BLOCK, TargetKind.DIRECTORY, TargetKind.FILE)
_SETTABLE = tuple(name for name, factor in FACTORS.items() if factor.kind is not FactorKind.CHANGE)
MAX_SUGGESTIONS = 5  # each takes almost a millisecond
MAX_MESSAGE = 300  # characters; a text of levels can have 1,000


def factor_texts(document: PlanDocument, part: Part) -> dict[str, str]:
    """Factor name -> levels as typed. The part overrides the common factors and their alternatives."""
    overruled = {other for pair in ALTERNATIVES for present, other in (pair, pair[::-1]) if present in part.factors}
    others = set() if part.streams else of_other_engines(engine_name(document.common | part.factors))
    common = {name: text for name, text in document.common.items() if name not in overruled | others}
    steps = {BEFORE: "; ".join(part.before)} if part.before else {}
    return stream_texts(part, common | part.factors | steps)


def kinds_of(part: Part, texts: Mapping[str, str]) -> tuple[str, ...]:
    """Kinds of target that a part runs on. A part with a layout runs only on pools."""
    return (TargetKind.POOL.value,) if name_layout(texts) else part.on


def parsed_levels(texts: Mapping[str, str], engine: str = "") -> tuple[dict[str, tuple[Value, ...]], list[GridProblem]]:
    """Levels of each factor with valid text, and the problems of the others. The engine is by default that of the
    texts."""
    parsed: dict[str, tuple[Value, ...]] = {}
    problems: list[GridProblem] = []
    for name, text in texts.items():
        factor = factor_of(name, engine or stream_engine(texts, stream_and_factor(name)[0]))
        if factor is None or factor.kind is FactorKind.CHANGE:
            meant = nearest(name, _SETTABLE) if len(problems) < MAX_SUGGESTIONS else ""
            problems.append(GridProblem(name, _no_such_factor(name, meant)))
            continue
        try:
            parsed[name] = levels.parse(factor, text)
        except levels.LevelError as error:
            problems.append(GridProblem(name, _shortened(str(error))))
    return parsed, problems


def _no_such_factor(name: str, meant: str) -> str:
    return f"there is no factor `{name}`.{f' Did you mean `{meant}`?' if meant else ''}"


def _shortened(text: str) -> str:
    return text if len(text) <= MAX_MESSAGE else f"{text[:MAX_MESSAGE]} …"
