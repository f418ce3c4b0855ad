"""Sentences of Rankings: the verdict, and what limits it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from webapp.analysis.equals import DEPTH, JOBS, NOT_STATED
from webapp.analysis.question import MARGIN
from webapp.analysis.words import in_sentence
from webapp.bench.rankings.catalogue import Load
from webapp.bench.rankings.groups import Entry, Group, ranked_apart
from webapp.bench.rankings.question import Ranked
from webapp.bench.rankings.ranking import Ranking
from webapp.bench.rankings.standings import Lead
from webapp.bench.specifications import pooled
from webapp.bench.workloads import chart_words
from webapp.core.formatting import bytes_binary, latency, ratio
from webapp.results.metrics import IOPS
from webapp.results.reading.doubts import unfinished_sentences, waited
from webapp.results.reading.newest import newest_words

KINDS = {Ranked.DRIVE: "drive", Ranked.CONTROLLER: "controller", Ranked.HOST: "host", Ranked.LAYOUT: "layout"}
NAMED = 2  # entries that a headline names
WITHIN = f"{100 * MARGIN:.0f} %"


@dataclass(frozen=True)
class Verdict:
    """The headline in two parts, and what everybody must know about it, in two or three words each."""

    first: str
    second: str
    pills: tuple[str, ...] = ()


def verdict(ranking: Ranking) -> Verdict:
    kind = KINDS[ranking.question.ranked]
    if ranking.load is None and ranking.question.limit_ns is not None and ranking.catalogue.loads:
        return Verdict("No shares of the load are measured here.", "Run a plan with the factor load, or choose IOPS.")
    if ranking.load is None:
        words = "No result fits this filter." if ranking.whole.loads else "Nothing is measured yet."
        return Verdict(words, "")
    if ranking.question.limit_ns is not None and not ranking.all_groups:
        if all(entry.worst_p99_ns is None for entry in ranking.cells.beyond):
            return Verdict("No share of the load has a p99 latency.", "Measure for longer: p99 needs 1,000 I/Os.")
        above = f"p99 is above {latency(ranking.question.limit_ns)}, or the drive cannot keep up"
        return Verdict(f"At each measured share of the load, {above}.", "Measure lower shares.")
    if not ranking.groups:
        alone = len(ranking.alone)
        return Verdict("Nothing to rank.", f"No two {kind}s are comparable; {alone} measured alone." if alone else "")
    group = ranking.groups[0]
    limit = ranking.question.limit_ns
    among = _among(ranking) + (f" with p99 up to {latency(limit)}" if limit else "")
    return Verdict(*_headline(group, kind, among), tuple(_pills(ranking, group)))


def _among(ranking: Ranking) -> str:
    """What the first group has in common, if there are others: its leader is not the leader of all."""
    if len(ranking.groups) == 1:
        return ""
    kind = ranking.groups[0].kind
    place = place_words(kind.place)
    return f" in {place}" if place else f" with {kind.tool}"


def _headline(group: Group, kind: str, among: str) -> tuple[str, str]:
    metric, first = group.panel.metric, group.first
    value = _value(group, first)
    if group.order.lead is Lead.NONE:
        names = [first.name, *(entry.name for entry in group.level)]
        return f"No leader by more than {WITHIN}{among}: {_named(names)}.", f"The highest is {value}." if not (
            metric.lower_is_better
        ) else f"The lowest is {value}."
    next_one = group.order.ranked[1].ratio
    further = f"{ratio(next_one.value)} the next {kind}" if next_one else f"ahead of the next {kind}"
    if metric.lower_is_better:
        further = f"The next {kind} has {ratio(next_one.value)}" if next_one else f"Ahead of the next {kind}"
    if group.order.lead is Lead.CLAIMED:
        return f"{first.name} {_verb(group)}{among}: {value}.", f"{further}."
    way = "lowest" if metric.lower_is_better else "highest"
    how = "measured once" if first.summary.n == 1 else f"n = {first.summary.n}"
    return f"{first.name} showed the {way} {in_sentence(metric.label)}{among}: {value}.", f"{further}, {how}."


def lead_words(group: Group) -> str:
    """Beside the title of a group, if its first is no leader for certain."""
    blocks = [entry.summary.n for entry in group.entries]
    if group.order.lead is Lead.NONE:
        return f"no leader by more than {WITHIN}" + (", measured once" if 1 in blocks else "")
    if group.order.lead is Lead.SEEN:
        return "measured once" if 1 in blocks else "too few repeats"
    return ""


def _value(group: Group, entry: Entry) -> str:
    metric = group.panel.metric
    text = metric.format(entry.summary.mean)
    return f"{text} {IOPS.label}" if metric == IOPS else text


def _verb(group: Group) -> str:
    if group.panel.metric.lower_is_better:
        return f"has the lowest {in_sentence(group.panel.metric.label)}"
    pattern = group.first.load.pattern
    if pattern.value.endswith("read"):
        return "reads fastest"
    return "writes fastest" if pattern.value.endswith("write") and "read" not in pattern.value else "is fastest"


def _named(names: Sequence[str]) -> str:
    """`A and B`, `A, B and 3 more`."""
    if len(names) <= NAMED:
        return " and ".join(names)
    return f"{', '.join(names[:NAMED])} and {len(names) - NAMED} more"


def _pills(ranking: Ranking, group: Group) -> Iterator[str]:
    if not ranking.was_wanted:
        yield "nearest workload"
    if len({entry.where for entry in group.entries}) > 1:
        yield "hosts differ"
    if group.order.in_one_order:
        yield "may be drift"
    if group.order.lead in (Lead.NONE, Lead.SEEN) and any(entry.summary.n == 1 for entry in group.entries):
        yield "measured once"


def load_words(load: Load) -> str:
    """`Random read, 4 KiB, 1 request in flight`"""
    return f"{chart_words(load.pattern)}, {bytes_binary(load.block_size)}, {flight_words(load)}"


def flight_words(load: Load) -> str:
    """`32 in flight`, or `4 jobs of queue depth 8`."""
    if load.numjobs > 1 and load.iodepth > 1:
        return f"{load.numjobs} jobs × queue depth {load.iodepth}"
    return (
        f"{load.in_flight} job{'s' if load.in_flight > 1 else ''}" if load.numjobs > 1 else f"{load.iodepth} in flight"
    )


def place_words(place: Sequence[str]) -> str:
    """Host and controller, as far as they are stated."""
    return ", ".join(part for part in place if part != NOT_STATED)


def apart_words(ranking: Ranking) -> str:
    """`5 more groups are ranked apart: other tools, other places. Some have higher values.`"""
    first, *others = ranking.groups or (None,)
    if first is None or not others:
        return ""
    are = "groups are" if len(others) > 1 else "group is"
    metric, best = first.panel.metric, first.first.summary.mean
    way = "lower" if metric.lower_is_better else "higher"
    values = [group.first.summary.mean for group in others if group.panel.metric == metric]
    is_beaten = any(value < best if metric.lower_is_better else value > best for value in values)
    beaten = f" {'It has' if len(others) == 1 else 'Some have'} {way} values." if is_beaten else ""
    return f"{len(others)} more {are} ranked apart: {', '.join(ranked_apart(ranking.groups))}.{beaten}"


def holds_words(group: Group, ranking: Ranking) -> str:
    """`5 drives in storage1, measured by fio`; the headline names the place if there are other groups."""
    kind, place = KINDS[ranking.question.ranked], "" if _among(ranking) else place_words(group.kind.place)
    return f"{len(group.entries)} {kind}s{f' in {place}' if place else ''}, measured by {group.kind.tool}"


def caveats(ranking: Ranking) -> Iterator[str]:
    """One sentence or two each, the most important first."""
    entries = [entry for group in ranking.all_groups for entry in group.entries]
    if not ranking.was_wanted and ranking.load:
        yield f"The chosen workload was not measured. The nearest one is shown: {load_words(ranking.load)}."
    if any(len({entry.where for entry in group.entries}) > 1 for group in ranking.groups):
        yield "Hosts differ inside a group: a difference may come from the host or controller."
    if any(group.order.in_one_order for group in ranking.groups):
        yield "A leader was always measured before or after others. Drift of the host can look like a difference."
    once = sum(entry.summary.n == 1 for entry in entries)
    if once:
        yield f"{once} of {len(entries)} values were measured once. They have no interval and support no claim."
    if any(not {DEPTH, JOBS} <= row.point.keys() for entry in entries for row in entry.rows):
        yield "Some imports state no queue depth or number of jobs. They count as 1."
    if lasting := dict.fromkeys(entry.name for entry in entries if entry.is_last_share):
        yield f"Within the limit at the highest share measured, so more may be possible: {_named([*lasting])}."
    if ranking.cells.beyond:
        names = dict.fromkeys(entry.name for entry in ranking.cells.beyond)
        yield f"Above the limit at each measured share of the load: {_named([*names])}."
    if any(group.order.lead is Lead.NONE and group.first.share for group in ranking.groups):
        yield "Between two shares, nobody knows where the limit is: a drive may reach the rate at its next share."
    if low := dict.fromkeys(entry.name for entry in entries if entry.share and any(map(waited, entry.rows))):
        yield f"I/Os waited for earlier ones, so the p99 is too low: {_named([*low])}."
    if any(entry.shares_ceiling for entry in entries):
        yield (
            "Shared ceiling: drives in one host have equal values that stay the same at another load. A link, a "
            "controller or equal drives look like this."
        )
    yield from unfinished_sentences(row for entry in entries for row in entry.rows)
    if means := dict.fromkeys(f"{entry.name} ({over})" for entry in entries if (over := pooled(entry.rows))):
        yield f"Means over several configurations: {_named([*means])}."
    if ranking.has_more:
        yield newest_words()
    if ranking.unread:
        yield f"There are too many results to read those for {' and '.join(ranking.unread)}. Filter them."
