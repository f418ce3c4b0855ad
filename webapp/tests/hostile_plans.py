"""Small texts of plans that describe far more than a run may have, and the largest plans that a run may have."""

from collections.abc import Mapping
from typing import Any

from webapp.plans.document import Part, PartStream, PlanDocument
from webapp.plans.factors import FACTORS, FactorKind

WIDE = "1..1000 +1"
PATTERNS = "read,write,randread,randwrite,readwrite,randrw,trim,randtrim,trimwrite,randtrimwrite"
_NUMBERS = (FactorKind.OPTION, FactorKind.SETTING, FactorKind.WORKLOAD, FactorKind.PROCESS)
NUMERIC = [name for name, factor in FACTORS.items() if factor.numeric and factor.kind in _NUMBERS]
SWITCHES = ("direct", "fixedbufs", "registerfiles", "prefill", "end_fsync", "drop_caches")


def _plan(*parts: Part, repeats: Any = 1, **common: Any) -> PlanDocument:
    shared = {"size": "64M", "runtime": "3s"} | common
    return PlanDocument(title="Hostile", common=shared, parts=parts, repeats=repeats)


def _part(number: int = 0, /, *rules: str, streams: Any = (), **factors: Any) -> Part:
    return Part(name=f"p{number}", factors={"pattern": "randread"} | factors, rules=rules, streams=streams)


def _streams(count: int, patterns: str) -> tuple[PartStream, ...]:
    return tuple(PartStream(name=f"s{number}", factors={"pattern": patterns}) for number in range(count))


_DEPTHS = {"iodepth": WIDE, "numjobs": WIDE}
_MANY = ("iodepth", "numjobs", "files", "ramp", "run_length", "rate_iops", "nr_requests", "read_ahead_kb")
_TWO = ("iodepth", "numjobs", "files", "ramp", "run_length", "nice")
_BINARY = dict.fromkeys(SWITCHES, "on, off") | dict.fromkeys(_TWO, "1, 2")
_SPLIT = ":".join([*(f"{512 * number}/1" for number in range(1, 61)), "1M/40"])
# Over a limit: nobody can save or start them.
TOO_LARGE: Mapping[str, PlanDocument] = {
    "six parts of a million points": _plan(*(_part(number, **_DEPTHS) for number in range(6))),
    "every common factor in 50 parts": _plan(*map(_part, range(50)), **dict.fromkeys(NUMERIC, WIDE)),
    "every factor in one part": _plan(_part(**dict.fromkeys(NUMERIC, WIDE))),
    "conditions of 2,500 rules": _plan(
        *(
            _part(number, *(f"except iodepth={WIDE}; numjobs={WIDE}",) * 50, iodepth="1", numjobs="1")
            for number in range(50)
        )
    ),
    "one combination of 10^24": _plan(_part(0, "only when iodepth=1; numjobs=1", **dict.fromkeys(_MANY, WIDE))),
    "patterns of eight streams": _plan(_part(streams=_streams(8, PATTERNS))),
    "one combination of patterns of four streams": _plan(
        _part(0, "only when s0.pattern=read; s1.pattern=read", streams=_streams(4, PATTERNS))
    ),
    "two to the power of 25 layouts": _plan(_part(layout="a|a " * 25)),
    "thousand repeats of a layout": _plan(_part(layout=f"single / xfs {' '.join(f'o{n}|o{n}' for n in range(60))}")),
    "trials of eight streams": _plan(_part(streams=_streams(8, "randread"), iodepth="1..100 +1"), repeats=100),
    "one trial too many": _plan(_part(iodepth="1..73 +1", numjobs="1..137 +1")),
}
# The most that a run may have, in the ways that cost most.
LARGEST: Mapping[str, PlanDocument] = {
    "10,000 points": _plan(_part(iodepth="1..100 +1", numjobs="1..100 +1")),
    "100 repeats of eight streams": _plan(_part(streams=_streams(8, "randread"), iodepth="1..20 +1"), repeats=100),
    "points with long splits": _plan(_part(block_split=_SPLIT, iodepth=WIDE, numjobs="1..10 +1")),
    "effects of two patterns": _plan(
        _part(pattern="read, randread", skip="512..512000 +512", run_length=WIDE, iodepth="1, 2, 3, 4, 5")
    ),
    "50 rules": _plan(
        _part(
            0,
            "only when direct=on; iodepth=1",
            *(f"except {'; '.join(f'{name}={levels}' for name, levels in _BINARY.items() if name != 'ramp')}; ramp=2",)
            * 49,
            **_BINARY,
        )
    ),
    "patterns and schedulers": _plan(_part(pattern=PATTERNS, scheduler=",".join(f"{n:x}" for n in range(250)))),
}
# Invalid in thousands of places.
INVALID: Mapping[str, PlanDocument] = {
    "unknown factors": _plan(*(_part(n, **{f"unknown_{n}_{m}": "1" for m in range(300)}) for n in range(50))),
    "long texts": _plan(*(_part(n, **dict.fromkeys(NUMERIC, "x" * 400)) for n in range(10))),
    "ranges with blanks": _plan(*(_part(n, **dict.fromkeys(NUMERIC, f"1..{' ' * 400}x")) for n in range(10))),
}
# Files: kind in the form of an import, and text.
FILES: Mapping[str, tuple[str, str]] = {
    "jobs with the options of [global]": ("job", "[global]\n" + "b=1\n" * 30_000 + "[a]\n" * 30_000),
    "1,000 jobs with the options of [global]": ("job", "[global]\n" + "bs=4k\n" * 30_000 + "[a]\nstonewall\n" * 900),
    "unknown options": ("job", "[global]\n" + "".join(f"b{n}=1\n" for n in range(20_000)) + "[a]\n" * 900),
    "equal names of jobs": ("job", "[global]\nrw=read\nsize=1g\n" + "[a]\nstonewall\n; sweetspot: part = x\n" * 1000),
    "options before a section": ("job", "$\n" * 120_000),
    "list of texts": ("yaml", f"title: x\nparts: [{'1,' * 125_000}]"),
    "deep lists": ("yaml", "title: x\nparts: " + "[" * 100_000),
    "equal keys": ("yaml", "a: 1\n" * 50_000),
    "aliases": ("yaml", "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n"),
    "large numbers": ("yaml", f"title: x\nrepeats: {'9' * 200_000}\nparts: []"),
}
