"""`make bench-ingest ARGS="posts"`, or python -m webapp.local.ingest_bench: the figures of the way in."""

import argparse
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import django
from django.core.management import call_command

from webapp.local import bench, processes, services, stack
from webapp.local.bench import Figure, figure
from webapp.local.console import run_command, say, step
from webapp.local.ingest_bench import overload
from webapp.local.state import State, default_state

POSTS_WANTED, P99_WANTED_S = 0.5, 2.0
MIB = 1024 * 1024


def main(arguments: Sequence[str]) -> int:
    """Measure and print; 1 if a figure misses what is wanted."""
    options = _options(arguments)
    state = default_state(f"ingest-{os.getpid()}")
    figures: list[Figure] = []
    try:
        for name in options.what:
            figures += MEASUREMENTS[name](state, options)
    finally:
        with step("removing the bench's processes and data"):
            stack.remove(state)
    bench.show(figures, as_json=options.json)
    return 0 if all(each.met for each in figures) else 1


def _options(arguments: Sequence[str]) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="make bench-ingest", description="How much the way to a commit carries.")
    parser.add_argument("what", nargs="*", choices=[*MEASUREMENTS, []], help="default: all of them")
    parser.add_argument("--hosts", type=int, default=500)
    parser.add_argument("--seconds", type=int, default=300, help="how long the hosts play")
    parser.add_argument("--pairs", type=int, default=5, help="pairs of measurements of a ratio, in turn")
    parser.add_argument("--trials", type=int, default=1000, help="finished trials that are resent")
    parser.add_argument("--samples", type=int, default=60, help="seconds of each of them")
    parser.add_argument("--hours", type=float, default=8.0, help="length of the trial whose memory is watched")
    parser.add_argument("--json", action="store_true", help="print the figures as JSON too")
    options = parser.parse_args(arguments)
    options.what = options.what or list(MEASUREMENTS)
    return options


# ---- the server


def _prepare(state: State) -> None:
    """Stores and tables; this process becomes one of Sweetspot's."""
    stack.start_stores(state)
    os.environ.update(services.environment(state))
    django.setup()
    with step("database tables"):
        call_command("migrate", verbosity=0)
        call_command("setup", stdout=open(os.devnull, "w"))  # noqa: SIM115, PTH123


@contextmanager
def _one_gunicorn(state: State) -> Iterator[int]:
    """One gunicorn process that also has the bare view; its port."""
    listener = services.reserve_address(state)
    assert listener
    port = int(listener.getsockname()[1])
    command = services.web(state, listener)
    environment = {**command.environment, "DJANGO_SETTINGS_MODULE": "webapp.local.ingest_bench.settings"}
    processes.start(
        state,
        processes.Command(
            command.name, (*command.argv, "--workers", "1"), environment, command.folder, pass_fds=(listener.fileno(),)
        ),
    )  # fmt: skip
    listener.close()
    try:
        yield port
    finally:
        processes.stop(state, services.WEB)


# ---- posts


def posts(state: State, options: argparse.Namespace) -> list[Figure]:
    """Report posts ÷ posts to the bare view, in turn."""
    _prepare(state)
    from webapp.local.ingest_bench.lab import make_players
    from webapp.local.ingest_bench.poster import saturate

    players = make_players(8, running=True)
    told, plain = [0] * len(players), [0] * len(players)
    ratios: list[float] = []
    with _one_gunicorn(state) as port:
        for pair in range(options.pairs + 1):
            with step(f"posts, pair {pair} of {options.pairs}" if pair else "warming up"):
                ours = _rate(saturate(port, [_reports(p, told, n) for n, p in enumerate(players)], 4.0))
                bare = _rate(saturate(port, [_bare(p, plain, n) for n, p in enumerate(players)], 4.0))
            if pair:
                ratios.append(ours / bare)
                say(f"    {ours:.0f} reports/s, {bare:.0f} bare/s, ratio {ours / bare:.2f}")
    median = sorted(ratios)[len(ratios) // 2]
    return [figure("report posts ÷ bare view", "ratio", ratios, f">= {POSTS_WANTED}", met=median >= POSTS_WANTED)]


def _rate(found: tuple[int, float]) -> float:
    return found[0] / found[1]


def _reports(player: "object", told: list[int], place: int) -> Callable[[int], bytes]:
    def make(_: int) -> bytes:
        number, told[place] = told[place], told[place] + 1
        return player.second(number, time.time())  # type: ignore[attr-defined,no-any-return]

    return make


def _bare(player: "object", told: list[int], place: int) -> Callable[[int], bytes]:
    def make(_: int) -> bytes:
        number, told[place] = told[place], told[place] + 1
        return player.bare(number)  # type: ignore[attr-defined,no-any-return]

    return make


# ---- many hosts


def hosts(state: State, options: argparse.Namespace) -> list[Figure]:
    """One process plays all hosts; latencies from the end of a sample to the answer, which comes after the commit."""
    _prepare(state)
    from webapp.local.ingest_bench.lab import make_players
    from webapp.local.ingest_bench.play import play
    from webapp.results.models import Sample

    with step(f"{options.hosts} hosts"):
        players = make_players(options.hosts, running=True)
    listener = services.reserve_address(state)
    stack.start_server(state, listener)
    port = state.read_facts("ports.json")[services.WEB]
    with step(f"{options.hosts} hosts play for {options.seconds} s"):
        found = play(port, players, options.seconds)
    wanted = options.hosts * options.seconds
    kept = Sample.objects.count()
    say(f"    {kept} of {wanted} samples kept; backlog at most {max(found.backlog)}, at the end {found.backlog[-1]}")
    say(f"    machine: load {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores")
    first, second = _halves(found.backlog)
    say(f"    backlog on average: {first:.0f} samples in the first half, {second:.0f} in the second")
    left_behind = (second - first) / (options.seconds / 2) / options.hosts
    p99 = sorted(found.latencies_s)[int(0.99 * len(found.latencies_s))]
    stack.stop(state)
    return [
        figure("samples lost", "", [float(wanted - kept)], "0", met=kept == wanted),
        figure("end of a sample to committed, p99", "s", [p99], f"< {P99_WANTED_S:g}", met=p99 < P99_WANTED_S),
        figure("share of samples by which the backlog grows", "", [left_behind], "<= 0.001", met=left_behind <= 0.001),
    ]


def _halves(backlog: Sequence[int]) -> tuple[float, float]:
    """Means of the first and the second half: a server that cannot keep up with 1 % is 1 % of the samples behind."""
    half = len(backlog) // 2
    first, second = backlog[:half], backlog[half:]
    return sum(first) / max(1, len(first)), sum(second) / max(1, len(second))


# ---- memory


def memory(state: State, options: argparse.Namespace) -> list[Figure]:
    """The worker's resident memory while dumps of a long trial go through it as fast as it takes them."""
    from webapp.local.ingest_bench.long_trial import watch

    found = watch(state, hours=options.hours)
    quarter = len(found) // 4
    early, late = max(found[quarter : 2 * quarter]), max(found[-quarter:])
    say(f"    {min(found) / MIB:.1f} to {max(found) / MIB:.1f} MiB over {len(found)} looks")
    growth = (late - early) / MIB
    return [figure("worker's memory, last quarter minus second", "MiB", [growth], "< 2", met=growth < 2)]


MEASUREMENTS: dict[str, Callable[[State, argparse.Namespace], list[Figure]]] = {
    "posts": posts,
    "hosts": hosts,
    "overload": overload.measure,
    "resend": overload.measure_resend,
    "memory": memory,
}
if __name__ == "__main__":
    run_command(main)
