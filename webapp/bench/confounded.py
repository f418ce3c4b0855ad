"""Differences between the hosts of products. They may cause the differences between the numbers."""

from collections.abc import Mapping, Sequence

from webapp.bench.pooled import KERNEL, SCHEDULER
from webapp.bench.products import Kind, Product
from webapp.bench.specifications import HOST, TOOL, Facts

_ALSO = {"cpu.model": "CPU", KERNEL: "kernel", SCHEDULER: "scheduler", TOOL: "tool"}


def confounded(names: Mapping[Product, str], facts: Sequence[Facts]) -> str:
    """`Measured in different hosts: …`, or that the hosts may differ if one is unknown; "" if all were measured in the
    same hosts, or if hosts are compared."""
    measured = [(product, known) for product, known in zip(names, facts, strict=True) if known]
    hosts = [known.get(HOST, ()) for _, known in measured]
    if len(set(hosts)) < 2 or all(product.kind is Kind.HOST for product, _ in measured):
        return ""
    where = "; ".join(
        f"{names[product]}: {', '.join(each) or 'unknown'}" for (product, _), each in zip(measured, hosts, strict=True)
    )
    also = [words for name, words in _ALSO.items() if len({known.get(name) for _, known in measured}) > 1]
    more = f" These differ too: {', '.join(also)}." if also else ""
    said = "Measured in different hosts" if len(set(hosts) - {()}) > 1 else "The hosts may differ"
    return f"{said} ({where}). A difference may come from the host instead of the product.{more}"
