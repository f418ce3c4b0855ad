"""Which findings of an import come first."""

from math import log

from webapp.analysis.answer import Finding, FindingKind
from webapp.analysis.import_findings import Conclusions, Section, findings_in

K = FindingKind


def ranked(*findings: Finding) -> list[tuple[str, bool]]:
    """The sentence of each, and whether it repeats one before. Each is from a table of its own."""
    sections = tuple(
        Section(title=str(place), query="import=1", findings=(each,), sentences=(each.sentence,))
        for place, each in enumerate(findings)
    )
    return [(each.sentence, each.repeats) for each in findings_in(Conclusions(sections=sections), 1)]


def a_finding(sentence: str, kind: FindingKind, about: str, factor: float, value: float | None = None) -> Finding:
    return Finding(kind=kind, sentence=sentence, single=False, size=log(factor), value=value, about=about)


def test_each_kind_comes_once_before_any_comes_again() -> None:
    findings = (
        a_finding("large", K.EFFECT, "iops: A against C", 9), a_finding("small", K.EFFECT, "iops: A against B", 7),
        a_finding("parts", K.INTERACTION, "iops", 2), a_finding("as measured", K.RATIOS, "iops", 20),
    )  # fmt: skip
    assert [sentence for sentence, _ in ranked(*findings)] == ["large", "parts", "small", "as measured"]


def test_rates_come_before_latencies() -> None:
    findings = (
        a_finding("waits", K.EFFECT, "latency_p95: A against B", 15),
        a_finding("rate", K.EFFECT, "iops: A against B", 7),
        a_finding("parts", K.INTERACTION, "iops", 2),
    )
    assert [sentence for sentence, _ in ranked(*findings)] == ["rate", "parts", "waits"]


def test_one_limit_along_two_axes_is_said_again() -> None:
    findings = (
        a_finding("by depth", K.CEILING, "iops", 5, 51_400), a_finding("by jobs", K.CEILING, "iops", 4, 51_500),
        a_finding("another", K.CEILING, "iops", 3, 60_000), a_finding("rate", K.CEILING, "bytes_per_s", 2, 51_400),
    )  # fmt: skip
    assert sorted(ranked(*findings)) == [("another", False), ("by depth", False), ("by jobs", True), ("rate", False)]
    same = a_finding("effect", K.EFFECT, "iops: A against B", 3), a_finding("mirror", K.EFFECT, "iops: B against A", 3)
    assert ranked(*same) == [("effect", False), ("mirror", True)]
