"""`results`: as a table, CSV, JSON or a Parquet file."""

import argparse
import csv
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

from . import output
from .errors import ClientError, ExitCode, UsageError
from .server import Pairs, Server

SHOWN = 100
MAGIC = b"PAR1"
NESTED = {"point": "factor", "metrics": "metric", "steadiness_numbers": "steadiness"}  # field -> prefix of its columns


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser(
        "results", help="list or export results",
        epilog="Filters: run=17, run=17..25, plan=nightly, host=storage1, target=storage1/nvme0n1, direction=read, "
        "factor.block_size=4k and others, as in GET /api/v1/results.",
    )  # fmt: skip
    parser.add_argument("filters", nargs="*", metavar="KEY=VALUE", help="filters that must all match")
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--csv", action="store_true", help="all matching results as CSV")
    form.add_argument("--json", action="store_true", help="all matching results as JSON")
    form.add_argument("--parquet", type=Path, metavar="FILE", help="write all matching results to a Parquet file")
    parser.add_argument("--limit", type=int, metavar="N", help=f"at most N results; the table shows {SHOWN} by default")
    parser.set_defaults(command=run_results)


def run_results(options: argparse.Namespace, server: Server) -> ExitCode:
    query = _pairs(options.filters)
    if options.parquet:
        limit = [("limit", options.limit)] if options.limit else []
        _download_parquet(server, [*query, *limit], options.parquet)
        return ExitCode.OK
    most = options.limit or (None if options.csv or options.json else SHOWN)
    results = list(once_each(server.items("results", query, most=most)))
    if options.json:
        output.print_json(results)
    elif options.csv:
        _write_csv(results)
    else:
        _print_table(results, most)
    return ExitCode.OK


def _pairs(filters: Sequence[str]) -> Pairs:
    pairs: list[tuple[str, object]] = []
    for text in filters:
        key, is_there, value = text.partition("=")
        if not is_there or not key:
            raise UsageError(f"`{text}` is not a filter. Write KEY=VALUE, for example run=17.")
        pairs.append((key, value))
    return pairs


def once_each(items: Iterable[Any]) -> Iterator[Any]:
    """New results move the others to the next page, where they would appear again."""
    seen = set()
    for item in items:
        key = (item["trial"], item["direction"], item["point_key"])  # streams of a trial have different points
        if item["trial"] and key in seen:
            continue
        seen.add(key)
        yield item


def flat(item: dict[str, Any]) -> dict[str, Any]:
    """One column for each factor and metric: factor.block_size, metric.tps."""
    row: dict[str, Any] = {}
    for name, value in item.items():
        if name in NESTED:
            row |= {f"{NESTED[name]}.{key}": each for key, each in value.items()}
        else:
            row[name] = value
    return row


def _columns(rows: Iterable[dict[str, Any]]) -> list[str]:
    """Of all rows, the plain ones first."""
    names = dict.fromkeys(name for row in rows for name in row)
    return sorted(names, key=lambda name: "." in name)


def _write_csv(results: Sequence[dict[str, Any]]) -> None:
    rows = [flat(item) for item in results]
    writer = csv.DictWriter(sys.stdout, _columns(rows), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)


def _download_parquet(server: Server, query: Pairs, path: Path) -> None:
    """An interrupted download leaves no file of this name."""
    if not path.name:
        raise UsageError(f"{path} is not a file. Write --parquet results.parquet.")
    part = path.with_name(f"{path.name}.part")
    try:
        with part.open("w+b") as file:
            server.download("results.parquet", query, file)
            _check_parquet(file)
        part.replace(path)
    except OSError as error:
        raise UsageError(f"{path} cannot be written: {error}.") from error
    finally:
        part.unlink(missing_ok=True)
    output.remark(f"Results written to {path}")


def _check_parquet(file: IO[bytes]) -> None:
    """Such a file ends with MAGIC. A proxy may answer with a page of its own."""
    file.seek(max(0, file.tell() - len(MAGIC)))
    if file.read() != MAGIC:
        raise ClientError("The server sent no whole Parquet file. Is the address that of a Sweetspot server?")


def _print_table(results: Sequence[dict[str, Any]], most: int | None) -> None:
    if not results:
        return output.remark("No results match.")
    points = [item["point"] for item in results]
    varying = varying_factors(points)
    head = ("run", "target", "direction", *varying, "repeat", "IOPS", "bandwidth", "mean", "p99")
    print(output.table(head, [_row(item, varying) for item in results]))
    if len(results) == most:
        output.remark(f"Only the newest {most} results are shown. Use --limit, --csv, --json or a filter.")


def varying_factors(points: Sequence[dict[str, Any]]) -> list[str]:
    """Factors with different levels, in their order. A point without the factor does not count."""
    names = dict.fromkeys(name for point in points for name in point)
    return [name for name in names if len({str(point[name]) for point in points if name in point}) > 1]


def _row(item: dict[str, Any], varying: Sequence[str]) -> tuple[str, ...]:
    return (
        str(item["run"]) if item["run"] else f"import {item['imported']}", item["target"], item["direction"],
        *(level(item["point"], name) for name in varying), str(item["repeat"]),
        output.value("1/s", item["iops"]), output.value("B/s", item["bytes_per_s"]),
        output.value("ns", item["latency_mean_ns"]), output.value("ns", item["p99_ns"]),
    )  # fmt: skip


def level(point: dict[str, Any], name: str) -> str:
    return str(point[name]) if name in point else "–"
