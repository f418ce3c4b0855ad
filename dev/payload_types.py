"""`python -m dev.payload_types`: TypeScript of the data that pages and addresses send to our scripts.

The structs of `payload_files` become `.build/payloads/*.ts`, which scripts import as `#payloads/…`. The struct
`LiveRun` becomes the run-time check `liveRun` and its type `LiveRun`:

    export const liveRun = s.struct({ number: s.number, now: s.list(liveNow), elapsed_s: s.nullable(s.number) });
    export type LiveRun = s.Checked<typeof liveRun>;

A struct or enum in a field has its own check and type, in the first file that needs it; later files import it from
there. There are several files so that a page loads only the checks that it needs. `.ci/setup` and `make check-tsc`
write them.
"""

import json
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from msgspec import inspect

from dev.django_setup import set_up_without_database

REPOSITORY = Path(__file__).parents[1]  # dev.stack.state has it too, but is not in the image that builds the front end
FOLDER = REPOSITORY / ".build" / "payloads"

# A struct, an enum, or the name and the type of a Literal: a Literal has no name.
Kind = type | tuple[str, Any]


def payload_files() -> Mapping[str, Sequence[Kind]]:
    """File -> what scripts read from it. The only list of structs; what their fields need is added."""
    from webapp.core.formatting import ShownAs
    from webapp.screens import payloads
    from webapp.screens.bench.charts import BenchCharts, LoadCharts
    from webapp.screens.bench.picker import Shares
    from webapp.screens.explore.answer import LatencyCharts, MeansCharts, ScatterCharts, SeriesName, TimeCharts
    from webapp.screens.hosts.views import Enrolment, LogTail
    from webapp.screens.imports.upload_views import Added, Begun, ColumnPreview, ImportProblem, LabelPreview
    from webapp.screens.plans.previewing import PlanAnswer, PlanJobs
    from webapp.screens.trend.charts import TrendChart

    return {
        "charts": (("ShownAs", ShownAs), payloads.ChartCeiling, payloads.ChartSpan),
        "bench": (BenchCharts, LoadCharts, Shares),
        "compare": (MeansCharts, ScatterCharts, LatencyCharts, TimeCharts, SeriesName),
        "hosts": (Enrolment, LogTail),
        "imports": (Begun, Added, ImportProblem, ColumnPreview, LabelPreview),
        "live": (payloads.LiveRun,),
        "marks": (payloads.Marks,),
        "plan": (PlanJobs, PlanAnswer),
        "search": (payloads.SearchHits,),
        "trend": (TrendChart,),
    }


def typescript(files: Mapping[str, Sequence[Kind]]) -> dict[str, str]:
    """File -> its text. Raises TypeError for a type without a check, and for two types of one name."""
    names: dict[object, tuple[str, str]] = {}
    return {file: _File(file, names).text(kinds) for file, kinds in files.items()}


class _File:
    """One file. `names`, shared by all files: struct, enum or values of a Literal -> the file and name of its check."""

    def __init__(self, file: str, names: dict[object, tuple[str, str]]) -> None:
        self._file, self._names = file, names
        self._imports: dict[str, dict[str, None]] = {}  # file -> checks, in the order of their first use
        self._checks: list[str] = []

    def text(self, kinds: Sequence[Kind]) -> str:
        for kind in kinds:
            if isinstance(kind, tuple):
                self._literal(*kind)
            else:
                self._check(inspect.type_info(kind), kind.__name__)
        imports = [f'import {{ {", ".join(checks)} }} from "./{file}";' for file, checks in self._imports.items()]
        head = ("// Written by dev/payload_types.py.", 'import * as s from "../../frontend/src/lib/schema";')
        return "\n".join((*head, *imports, *self._checks, ""))

    def _literal(self, name: str, literal: object) -> None:
        kind = inspect.type_info(literal)
        if not isinstance(kind, inspect.LiteralType):
            raise TypeError(f"{name} is {literal}, which is not a Literal.")
        self._named(kind.values, name, lambda: _one_of(kind.values, name))

    def _check(self, kind: inspect.Type, field: str) -> str:
        """The check of a type in TypeScript. `field` has it, for messages."""
        match kind:
            case inspect.BoolType():
                return "s.boolean"
            case inspect.IntType() | inspect.FloatType():
                return "s.number"
            case inspect.StrType():
                return "s.string"
            case inspect.LiteralType(values=values):
                return self._use(values) if values in self._names else _one_of(values, field)
            case inspect.EnumType(cls=enum):
                return self._named(enum, enum.__name__, lambda: _one_of([member.value for member in enum], field))
            case inspect.StructType(cls=struct):
                return self._named(struct, struct.__name__, lambda: self._struct(kind))
            case inspect.ListType(item_type=item) | inspect.VarTupleType(item_type=item):
                return f"s.list({self._check(item, field)})"
            case inspect.UnionType(types=(inspect.NoneType(), item) | (item, inspect.NoneType())):
                return f"s.nullable({self._check(item, field)})"
        raise TypeError(f"{field} is {kind}, which has no check. Add it to dev/payload_types.py and lib/schema.ts.")

    def _struct(self, kind: inspect.StructType) -> str:
        name, options = kind.cls.__name__, kind.cls.__struct_config__
        if kind.array_like or kind.tag is not None or options.omit_defaults:
            raise TypeError(f"{name} is array_like, has a tag or omits defaults, which has no check.")
        fields = (
            f"  {field.encode_name}: {self._check(field.type, f'{name}.{field.name}')},\n" for field in kind.fields
        )
        return f"s.struct({{\n{''.join(fields)}}})"

    def _named(self, key: object, name: str, source: Callable[[], str]) -> str:
        """The name of a check, which is written if no file has it."""
        if key not in self._names:
            check = name[0].lower() + name[1:]
            text = f"\nexport const {check} = {source()};\nexport type {name} = s.Checked<typeof {check}>;"
            if check in {known for _, known in self._names.values()}:
                raise TypeError(f"Two types have the name {name}. Rename one: scripts know a type by its name.")
            self._names[key] = self._file, check
            self._checks.append(text)
        return self._use(key)

    def _use(self, key: object) -> str:
        file, check = self._names[key]
        if file != self._file:
            self._imports.setdefault(file, {})[check] = None
        return check


def _one_of(values: Iterable[object], field: str) -> str:
    if not all(isinstance(value, str) for value in values):
        raise TypeError(f"{field} has values that are not texts, which have no check.")
    return f"s.oneOf({', '.join(map(json.dumps, values))})"


def write(files: Mapping[str, Sequence[Kind]], folder: Path) -> None:
    """Make `folder` contain exactly these files; equal ones are not touched."""
    texts = {f"{file}.ts": text for file, text in typescript(files).items()}
    folder.mkdir(parents=True, exist_ok=True)
    for path in folder.iterdir():
        if path.name not in texts:
            path.unlink()
    for name, text in texts.items():
        path = folder / name
        if not path.is_file() or path.read_text() != text:
            path.write_text(text)


def main() -> int:
    set_up_without_database()
    write(payload_files(), FOLDER)
    return 0


if __name__ == "__main__":
    sys.exit(main())
