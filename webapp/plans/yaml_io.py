"""Reads and writes plans as YAML files, for version control and for other installations.

The keys are those of `document.PlanDocument`; defaults are left out on export. Comments are lost: use the plan's
`note`. Every scalar is read as text, so `on`, `no` and `60:40` are not converted.
"""

import re

import msgspec
import yaml

from webapp.core.errors import Refusal
from webapp.core.nearest import instead
from webapp.plans.document import Part, PartStream, PlanDocument
from webapp.plans.factors import by_cost

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
    except (msgspec.ValidationError, RecursionError) as error:
        raise PlanFileRefused(f"This is not a valid plan: {error}.{_valid_fields(str(error))}") from error


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
    read = dict(data) | ({"common": _levels(data["common"])} if "common" in data else {})
    if isinstance(parts, list):
        read["parts"] = [_read_part(part) if isinstance(part, dict) else part for part in parts]
    return read


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
    if document.common:
        plain["common"] = _sorted(document.common)
    ordered = {name: plain[name] for name in ("title", "note", "repeats", "order", "common", "parts") if name in plain}
    return HEAD + yaml.safe_dump(ordered | plain, sort_keys=False, allow_unicode=True, width=100)


def _part(part: Part) -> dict[str, object]:
    shown: dict[str, object] = {"name": part.name}
    if part.on != _default(Part, "on"):
        shown["on"] = list(part.on)
    rules = {"rules": list(part.rules)} if part.rules else {}
    before = {"before": list(part.before)} if part.before else {}
    streams = {"streams": {one.name: _sorted(one.factors) for one in part.streams}} if part.streams else {}
    return shown | before | {"factors": _sorted(part.factors)} | streams | rules


def _sorted(factors: dict[str, str]) -> dict[str, str]:
    return {name: factors[name] for name in by_cost(factors)}


def _default(kind: type[msgspec.Struct], name: str) -> object:
    return next(field.default for field in msgspec.structs.fields(kind) if field.name == name)
