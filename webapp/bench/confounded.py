"""Differences between the hosts of products, and between their kernels and tools. They may cause the differences
between the numbers."""

from collections.abc import Mapping, Sequence

from webapp.bench.pooled import KERNEL, SCHEDULER
from webapp.bench.products import Kind, Product
from webapp.bench.specifications import HOST, TOOL, Facts

_HARDWARE = frozenset({Kind.MODEL, Kind.SERIAL, Kind.TARGET, Kind.CONTROLLER})
_ALSO = {"cpu.model": "CPU", KERNEL: "kernel", SCHEDULER: "scheduler", TOOL: "tool"}
# Of one host. Its scheduler may be a factor of the plan, and is then part of the workload.
_OF_A_HOST = {KERNEL: "kernels", TOOL: "tools or versions"}


def confounded(names: Mapping[Product, str], facts: Sequence[Facts]) -> str:
    """`Measured in different hosts: …`, or that the hosts may differ if one is unknown; "" if hosts are compared.

    If all were measured in the same hosts, what else differs, unless runs, configurations or imports are compared.
    """
    measured = [(product, known) for product, known in zip(names, facts, strict=True) if known]
    hosts = [known.get(HOST, ()) for _, known in measured]
    if all(product.kind is Kind.HOST for product, _ in measured):
        return ""
    if len(set(hosts)) < 2:
        different = _different(_OF_A_HOST, measured) if all(one.kind in _HARDWARE for one in names) else []
        words = "A difference may come from them instead of the product."
        return f"Measured with different {' and '.join(different)}. {words}" if different else ""
    where = "; ".join(
        f"{names[product]}: {', '.join(each) or 'unknown'}" for (product, _), each in zip(measured, hosts, strict=True)
    )
    also = _different(_ALSO, measured)
    more = f" These differ too: {', '.join(also)}." if also else ""
    said = "Measured in different hosts" if len(set(hosts) - {()}) > 1 else "The hosts may differ"
    return f"{said} ({where}). A difference may come from the host instead of the product.{more}"


def _different(named: Mapping[str, str], measured: Sequence[tuple[Product, Facts]]) -> list[str]:
    """The words for the facts of which several values are known."""
    known = {words: {facts[name] for _, facts in measured if facts.get(name)} for name, words in named.items()}
    return [words for words, values in known.items() if len(values) > 1]
