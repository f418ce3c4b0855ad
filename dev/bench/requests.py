"""The requests of the benchmark of pages: kinds of pages with random parameters. Import after django.setup()."""

import random
from collections.abc import Callable
from dataclasses import dataclass
from urllib.parse import urlencode

from django.test import Client

from dev.bench.rows import HOSTS, MODELS
from webapp.runs.models import Run

LISTS = ("/runs/", "/runs/?page=2", "/plans/", "/hosts/", "/", "/queue/")
Address = Callable[[random.Random], str]
Read = Callable[[Client, str], None]


@dataclass(frozen=True)
class Kind:
    name: str
    address: Address
    read: Read


def kinds(runs: int) -> list[Kind]:
    """`runs`: how many there are."""
    return [
        Kind("results: newest first, sorted, other columns", _list, _whole),
        Kind("results: filtered by place and factor", lambda chance: f"/results/?{_filters(chance, runs)}", _whole),
        Kind("explore: one to three runs, all charts", lambda chance: _comparison(chance, runs), _whole),
        Kind("explore: latency and time line", lambda chance: _comparison(chance, runs, detail=True), _whole),
        Kind("bench: two to four products", _bench, _whole),
        Kind("trend: one plan at one target", lambda chance: _trend(chance, runs), _whole),
        Kind("trend: a nightly plan", lambda _: "/trends/?plan=grid-0&target=storage0/nvme0", _whole),
        Kind("run: 504 trials", lambda chance: f"/runs/{chance.randint(1, runs)}/", _whole),
        Kind("runs, plans, hosts, overview, queue", lambda chance: chance.choice(LISTS), _whole),
        Kind("results as CSV: first rows", lambda chance: f"/results.csv?{_filters(chance, runs)}", _first_rows),
    ]


def _whole(client: "Client", address: str) -> None:
    response = client.get(address, follow=True)
    if response.status_code != 200:
        raise RuntimeError(f"{address}: {response.status_code}")


def _first_rows(client: "Client", address: str) -> None:
    """Read only the heading and the first result, then close the export: a process writes only a few at a time."""
    response = client.get(address)
    lines = iter(response.streaming_content)  # type: ignore[attr-defined]
    next(lines)
    next(lines, None)  # a filter may match nothing
    response.close()


def _list(chance: random.Random) -> str:
    sorts = ("", "when", "-iops", "iops", "-latency_p99", "latency_mean", "-latency_p999", "bytes_per_s")
    given = {"sort": chance.choice(sorts)}
    if chance.random() < 0.3:
        given["columns"] = "target,serial,block_size,iodepth,iops,latency_p99,when"
    return f"/results/?{urlencode(given)}"


def _filters(chance: random.Random, runs: int) -> str:
    kinds: list[dict[str, str]] = [
        {"host": f"storage{chance.randrange(8)}"},
        {"run": str(chance.randint(1, runs))},
        {"run": f"{max(runs - 900, chance.randint(1, max(1, runs // 2)))}..{runs}"},
        {"plan": f"grid-{chance.randrange(12)}", "direction": chance.choice(("read", "write"))},
        {"factor.block_size": chance.choice(("4k", "8k, 16k", "4k..64k *2"))},
        {"factor.iodepth": "32", "factor.scheduler": "kyber", "host": f"storage{chance.randrange(8)}"},
        {"serial": f"S64G{chance.randrange(8)}1R800123", "sort": "-iops"},
        {"factor.ioengine": "psync", "sort": "-latency_p99", "repeat": "2..3"},
        {"invalid": "1", "sort": "-latency_p999"},
    ]
    return urlencode(chance.choice(kinds))


def _comparison(chance: random.Random, runs: int, *, detail: bool = False) -> str:
    chosen = sorted(chance.sample(range(1, runs + 1), chance.randint(1, min(3, runs))))
    given = {
        "run": ",".join(map(str, chosen)), "x": chance.choice(("iodepth", "block_size")), "panel": "pattern",
        "series": chance.choice(("ioengine", "scheduler", "run", "serial", "model")),
        "metric": chance.choice(("iops", "latency_p99", "bytes_per_s")), "factor.direct": "on",
    }  # fmt: skip
    if detail:
        given["view"] = chance.choice(("latency", "timeline"))
    else:
        given["chart"] = chance.choice(("", "", "bar", "heat"))
    return f"/explore/?{urlencode({key: value for key, value in given.items() if value})}"


def _bench(chance: random.Random) -> str:
    kinds = {
        "model": MODELS,
        "host": [f"storage{n}" for n in range(HOSTS)],
        "target": [f"storage{n}/nvme{m}" for n in range(HOSTS) for m in range(2)],
    }
    kind = chance.choice(sorted(kinds))
    chosen = chance.sample(kinds[kind], chance.randint(2, 4))
    return f"/bench/?{urlencode([('product', f'{kind}:{name}') for name in chosen])}"


def _trend(chance: random.Random, runs: int) -> str:
    """Of the plan and target of any run."""
    run = Run.objects.select_related("version__plan").get(number=chance.randint(1, runs))
    given = {"plan": run.version.plan.slug, "target": str(run.targets.get())}
    return f"/trends/?{urlencode(given | {'metric': chance.choice(('iops', 'latency_p99', 'bytes_per_s'))})}"
