"""Reads and writes plans as YAML files, for version control and for other installations.

The keys are those of `document.PlanDocument`; defaults are left out on export. Comments are lost: use the plan's
`note`. Every scalar is read as text, so `on`, `no` and `60:40` are not converted.
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Annotated

import msgspec
import yaml
from msgspec import Meta

from webapp.core.errors import Refusal, instead
from webapp.plans.factors import FACTORS, by_cost
from webapp.plans.values import Duration, ValueRefused

# Compares two versions of a plan, field by field.

# The content of a plan version, which is also the content of its YAML file.
#
# Everything that a trial depends on is a factor: options of the workload (`block_size`), settings of the host
# (`scheduler`), layouts. A factor that does not vary has one level. Levels are stored as a person types them
# (`512..4M *2`, `1,10,40`, `none, mq-deadline`); `factors` defines each factor's name, type and unit, `levels` parses
# the text.

Levels = Annotated[str, Meta(min_length=1, max_length=1000)]
StreamName = Annotated[str, Meta(min_length=1, max_length=20, pattern=r"^[a-z][a-z0-9_-]*\Z")]
KindName = Annotated[str, Meta(max_length=20)]
FactorName = Annotated[str, Meta(min_length=1, max_length=60, pattern=r"^[a-z][a-z0-9_.-]*\Z")]


MAX_STOP_AFTER = 1000
MAX_SPREAD = 50
MAX_BUDGET, MAX_BUDGET_S = 1000, 30 * 86400
MAX_RULES = 50
MAX_STREAMS = 8
MAX_STEP_LINES = 20


class Order(StrEnum):
    LISTED = "listed"
    RANDOMISED = "randomised"  # within blocks; a block contains all points once


class PartStream(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One of several workloads that a part runs at the same time. Its factors override those of the part."""

    name: StreamName
    factors: dict[FactorName, Levels]


class Part(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    """One full-factorial grid of the plan. Its factors override the plan's common factors."""

    name: Annotated[str, Meta(min_length=1, max_length=100)]
    factors: dict[FactorName, Levels]
    # Kinds of target it runs on; it skips other targets, and the preview says so.
    on: Annotated[tuple[KindName, ...], Meta(max_length=50)] = ("block", "directory", "file")
    rules: Annotated[tuple[Levels, ...], Meta(max_length=MAX_RULES)] = ()  # see `plans.rules`
    streams: Annotated[tuple[PartStream, ...], Meta(max_length=MAX_STREAMS)] = ()  # see `plans.streams`
    before: Annotated[tuple[Levels, ...], Meta(max_length=MAX_STEP_LINES)] = ()  # steps before trials: `plans.steps`


class PlanDocument(msgspec.Struct, frozen=True, forbid_unknown_fields=True, kw_only=True):
    title: Annotated[str, Meta(min_length=1, max_length=200)]
    parts: Annotated[tuple[Part, ...], Meta(min_length=1, max_length=50)]
    question: Annotated[str, Meta(max_length=200)] = ""  # that its runs answer, in one line
    common: dict[FactorName, Levels] = {}  # factors of every part
    note: Annotated[str, Meta(max_length=20_000)] = ""  # Markdown
    repeats: Annotated[int, Meta(ge=1, le=100)] = 3
    # Further repeats are skipped once the 95 % interval between the trials of each point is within ± this; 0: never.
    spread_percent: Annotated[int, Meta(ge=0, le=MAX_SPREAD)] = 0
    repeats_min: Annotated[int, Meta(ge=2, le=100)] = 3  # before repeats are skipped
    # Further repeats are skipped at points where every comparison is decided: it differs, or is equal within ± this.
    decide_percent: Annotated[int, Meta(ge=0, le=MAX_SPREAD)] = 0  # 0: never
    decide: Annotated[tuple[FactorName, ...], Meta(max_length=20)] = ()  # whose levels are compared; (): all
    # Searches for the best combination instead of measuring all of them: see `plans.goal`. "": measures all.
    goal: Annotated[str, Meta(max_length=200)] = ""
    budget: Annotated[int, Meta(ge=0, le=MAX_BUDGET)] = 0  # trials on each target; 0: `plans.goal.budget_of`
    budget_s: Annotated[int, Meta(ge=0, le=MAX_BUDGET_S)] = 0  # seconds for the search; 0: no limit
    order: Order = Order.RANDOMISED
    # Listed order: these factors first, the first one changes slowest; then the others by the cost of changing them.
    sequence: Annotated[tuple[FactorName, ...], Meta(max_length=200)] = ()
    drop_caches: bool = False  # before every trial
    retries: Annotated[int, Meta(ge=0, le=5)] = 1  # retries of lost attempts; never for destructive trials
    # A host gets no more trials of the run after this number of consecutive failures; 0: no limit.
    stop_after: Annotated[int, Meta(ge=0, le=MAX_STOP_AFTER)] = 10
    version: int = 1

    def names(self, factor: str) -> bool:
        """Whether a part or the common factors name it."""
        return any(factor in factors for factors in (self.common, *(part.factors for part in self.parts)))


def read(data: object) -> PlanDocument:
    """A document from the JSON of the database. Raises msgspec.ValidationError."""
    return msgspec.convert(data, PlanDocument)


def write(document: PlanDocument) -> dict[str, object]:
    """The JSON for the database."""
    plain: dict[str, object] = msgspec.to_builtins(document)
    return plain


_ORDERS = {Order.LISTED: "as listed", Order.RANDOMISED: "randomised within each repeat"}


@dataclass(frozen=True)
class Difference:
    """`where` is the name of a part, or "" for the whole plan; "" in `before` or `after` means absent."""

    where: str
    what: str
    before: str
    after: str

    @property
    def verb(self) -> str:
        if not self.before:
            return "added"
        return "changed" if self.after else "removed"


def differences(before: PlanDocument, after: PlanDocument) -> tuple[Difference, ...]:
    """Differences in the order of the editor's fields; () if the versions are equal."""
    return (*_plan(before, after), *_factors("", before.common, after.common), *_parts(before, after))


def _plan(before: PlanDocument, after: PlanDocument) -> list[Difference]:
    pairs = zip(_rules(before), _rules(after), strict=True)
    return [Difference("", what, old, new) for (what, old), (_, new) in pairs if old != new]


def _rules(document: PlanDocument) -> list[tuple[str, str]]:
    return [
        ("Title", document.title),
        ("Question", document.question),
        ("Note", document.note),
        ("Repeats", str(document.repeats)),
        ("Required precision", f"±{document.spread_percent} %" if document.spread_percent else "never"),
        ("Repeats until decided within", f"±{document.decide_percent} %" if document.decide_percent else "never"),
        ("Factors that must be decided", ", ".join(map(_label, document.decide))),
        ("Minimum repeats", str(document.repeats_min)),
        ("Goal", document.goal),
        ("Budget", budget_text(document)),
        ("Order", _ORDERS[document.order]),
        ("Slowest factors when listed", ", ".join(map(_label, document.sequence))),
        ("Caches dropped before each trial", "yes" if document.drop_caches else "no"),
        ("New attempts after a lost one", str(document.retries)),
        ("Failure limit", str(document.stop_after) if document.stop_after else "never"),
        ("Order of parts", ", ".join(part.name for part in document.parts)),
    ]


def _factors(where: str, before: Mapping[str, str], after: Mapping[str, str]) -> list[Difference]:
    return [
        Difference(where, _label(name), before.get(name, ""), after.get(name, ""))
        for name in by_cost({*before, *after})
        if before.get(name) != after.get(name)
    ]


def _parts(before: PlanDocument, after: PlanDocument) -> list[Difference]:
    old, new = ({part.name: part for part in document.parts} for document in (before, after))
    return [
        difference
        for name in dict.fromkeys([*old, *new])
        for difference in _part_differences(name, old.get(name), new.get(name))
    ]


def _part_differences(name: str, before: Part | None, after: Part | None) -> list[Difference]:
    kinds = [", ".join(part.on) if part else "" for part in (before, after)]
    where = [Difference(name, "Runs on", *kinds)] if kinds[0] != kinds[1] else []
    rules = [" · ".join(part.rules) if part else "" for part in (before, after)]
    where += [Difference(name, "Rules", *rules)] if rules[0] != rules[1] else []
    steps = ["; ".join(part.before) if part else "" for part in (before, after)]
    where += [Difference(name, "Steps before", *steps)] if steps[0] != steps[1] else []
    return where + _factors(name, _all_factors(before), _all_factors(after))


def _all_factors(part: Part | None) -> dict[str, str]:
    """Those of the part and of its streams: `reader.iodepth`."""
    if part is None:
        return {}
    of_streams = {f"{stream.name}.{name}": text for stream in part.streams for name, text in stream.factors.items()}
    return part.factors | of_streams


def _label(factor: str) -> str:
    return FACTORS[factor].label if factor in FACTORS else factor


MAX_BYTES = 256 * 1024
MAX_NODES = 20_000  # texts, lists and maps; each takes almost a tenth of a millisecond
HEAD = "# Sweetspot plan\n"


class PlanFileRefused(Refusal):
    """The file is not a valid plan; the message says where."""

    def __init__(self, message: str) -> None:
        super().__init__("plan_file_refused", message)


class _Loader(yaml.BaseLoader):
    """A loader for texts, lists and maps. It refuses aliases, with which a few bytes can expand to gigabytes."""

    nodes = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        if self.check_event(yaml.AliasEvent):
            line = self.peek_event().start_mark.line + 1  # type: ignore[no-untyped-call]
            raise PlanFileRefused(f"Line {line}: aliases (`*name`) are not supported.")
        self.nodes += 1
        if self.nodes > MAX_NODES:
            raise PlanFileRefused(f"The file has more than {MAX_NODES:,} texts, lists and maps.")
        node: yaml.Node | None = super().compose_node(parent, index)
        return node


def import_plan(text: str) -> PlanDocument:
    """Read a plan from YAML or JSON. Raises PlanFileRefused; the levels are not checked."""
    if len(text.encode("utf-8", "surrogatepass")) > MAX_BYTES:
        raise PlanFileRefused(f"The file is over the limit of {MAX_BYTES // 1024} KiB.")
    try:
        data = yaml.load(text, Loader=_Loader)  # noqa: S506 - a BaseLoader makes nothing but texts, lists and maps
    except yaml.YAMLError as error:
        raise PlanFileRefused(f"The file is not YAML: {' '.join(str(error).split())}.") from error
    except (RecursionError, ValueError) as error:
        raise PlanFileRefused("The file is not valid YAML.") from error
    return document_of(data)


def document_of(data: object) -> PlanDocument:
    """A document from plain JSON or YAML values. Raises PlanFileRefused."""
    try:
        return msgspec.convert(_joined(data), PlanDocument, strict=False)
    except ValueRefused as refused:
        raise PlanFileRefused(f"This is not a valid plan: {refused}.") from refused
    except (msgspec.ValidationError, RecursionError) as error:
        words = str(error).replace("Integer value out of range", "the number is too large")
        raise PlanFileRefused(f"This is not a valid plan: {words}.{_valid_fields(words)}") from error


def _valid_fields(error: str) -> str:
    """The valid fields, if the error is an unknown one."""
    unknown = re.search(r"unknown field `(.*?)`(?: - at `(.*)`)?", error)
    if unknown is None:
        return ""
    place = unknown[2] or ""
    kind = PartStream if "streams" in place else Part if "parts" in place else PlanDocument
    return f" {instead(unknown[1], kind.__struct_fields__)}"


def _joined(data: object) -> object:
    """Levels may also be a list: [4k, 8k] is `4k, 8k`."""
    if not isinstance(data, dict):
        return data
    parts = data.get("parts")
    data = data | (read_budget(str(data["budget"])) if "budget" in data else {})
    read = dict(data) | ({"common": _levels(data["common"])} if "common" in data else {})
    if isinstance(parts, list):
        read["parts"] = [_read_part(part) if isinstance(part, dict) else part for part in parts]
    return read


_TRIALS = re.compile(r"([0-9]{1,9})( trials?)?")


def read_budget(text: str) -> dict[str, int]:
    """The fields of a budget: `80`, `80 trials`, `30 minutes` or `80 trials, 30 minutes`. Raises ValueRefused."""
    budget: dict[str, int] = {}
    for piece in map(str.strip, text.split(",")):
        if trials := _TRIALS.fullmatch(piece):
            name, value = "budget", int(trials[1])
        else:
            name, value = "budget_s", Duration(1, MAX_BUDGET_S).parse(piece)
        if name in budget:
            raise ValueRefused(f"`{text}` is not a budget; write it like `80 trials, 30 minutes`")
        budget[name] = value
    return {"budget": 0} | budget


def budget_text(document: PlanDocument) -> str:
    """As `read_budget` reads it; "" without a budget."""
    trials = f"{document.budget} trials" if document.budget else ""
    time = Duration().format(document.budget_s) if document.budget_s else ""
    return ", ".join(filter(None, (trials, time)))


def _read_part(part: dict[str, object]) -> dict[str, object]:
    """Streams may also be a map from name to factors, which keeps its order in a file."""
    read = part | {"factors": _levels(part.get("factors", {}))}
    streams = part.get("streams")
    if isinstance(streams, dict):
        read["streams"] = [{"name": name, "factors": _levels(factors)} for name, factors in streams.items()]
    return read


def _levels(factors: object) -> object:
    if not isinstance(factors, dict):
        return factors
    return {name: ", ".join(map(str, text)) if isinstance(text, list) else text for name, text in factors.items()}


def export_plan(document: PlanDocument) -> str:
    """The YAML text from which `import_plan` reads the same document."""
    plain: dict[str, object] = {
        name: value for name, value in msgspec.to_builtins(document).items() if value != _default(PlanDocument, name)
    }
    plain["parts"] = [_part(part) for part in document.parts]
    if plain.pop("budget_s", 0):
        plain["budget"] = budget_text(document)
    if document.common:
        plain["common"] = _sorted(document.common)
    first = ("title", "question", "note", "repeats", "order", "common", "parts")
    ordered = {name: plain[name] for name in first if name in plain}
    return HEAD + yaml.safe_dump(ordered | plain, sort_keys=False, allow_unicode=True, width=100)


def _part(part: Part) -> dict[str, object]:
    shown: dict[str, object] = {"name": part.name}
    if part.on != _default(Part, "on"):
        shown["on"] = list(part.on)
    rules = {"rules": list(part.rules)} if part.rules else {}
    before = {"before": list(part.before)} if part.before else {}
    streams = {"streams": {stream.name: _sorted(stream.factors) for stream in part.streams}} if part.streams else {}
    return shown | before | {"factors": _sorted(part.factors)} | streams | rules


def _sorted(factors: dict[str, str]) -> dict[str, str]:
    return {name: factors[name] for name in by_cost(factors)}


def _default(kind: type[msgspec.Struct], name: str) -> object:
    return next(field.default for field in msgspec.structs.fields(kind) if field.name == name)
