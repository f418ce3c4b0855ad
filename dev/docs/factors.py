"""The page of all factors of plans."""

from collections.abc import Iterable

from dev.docs.table import table
from webapp.plans.engines import ENGINES
from webapp.plans.factors import FACTORS
from webapp.plans.setting_rows import Factor, FactorKind

TITLES = {
    FactorKind.WORKLOAD: "Workload",
    FactorKind.OPTION: "Further options of the workload",
    FactorKind.PROCESS: "Processes of the engine",
    FactorKind.STOPPING: "End of a trial",
    FactorKind.DRIVE: "Before a trial",
    FactorKind.TARGETS: "Targets and hosts at once",
    FactorKind.STREAMS: "Streams with different workloads",
    FactorKind.LAYOUT: "Layout",
    FactorKind.SETTING: "Settings",
    FactorKind.CHANGE: "Set by Sweetspot",
}
HEAD = """# Factors

A plan can vary or fix each of these factors. The name is the key in the YAML file; the label is shown on the pages. A
factor without a default is used only if the plan names it. Levels are separated by commas, and `512..4M *2` is a sweep:
see [what a plan can say](plans.md). [Settings](settings.md) describes the settings in full, and
[fio's options](fio-options.md) shows the option of fio for each factor.

This page is generated from the table that the server uses.
"""


def page() -> str:
    return HEAD + "".join(f"\n## {title}\n\n{_table(kind)}" for kind, title in TITLES.items())


def _table(kind: FactorKind) -> str:
    return table(("factor", "label", "default", "engine", "notes"), _rows(kind))


def _rows(kind: FactorKind) -> Iterable[tuple[str, ...]]:
    for factor in FACTORS.values():
        if factor.kind is kind:
            yield f"`{factor.name}`", factor.label, _default(factor), _engines(factor), factor.help or _unit(factor)


def _default(factor: Factor) -> str:
    return "" if factor.default is None else f"`{factor.values.write(factor.default)}`"


def _unit(factor: Factor) -> str:
    return f"in {factor.unit}" if factor.unit else ""


def _engines(factor: Factor) -> str:
    """The engines that have this factor; empty if it does not belong to an engine."""
    return ", ".join(name for name, engine in ENGINES.items() if factor.name in {own.name for own in engine.FACTORS})
