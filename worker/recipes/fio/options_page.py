"""Write the reference page about options of fio in job files.

Use: `python -m worker.recipes.fio.options_page > docs/reference/fio-options.md`.
"""

from collections.abc import Iterable

from worker.recipes.fio.options import ALLOWED, REFUSED, Meaning, Option

_HEAD = """# fio's options in job files

A fio job file, or a command `fio --name=…`, can be opened as a plan: on the page "Import a plan", with the
[command line](command-line.md) and with the API. Each option sets a factor of the plan, is what every trial does, is
ignored and listed in the plan's note under "Differences from fio", or is refused with a reason. The same factors can be
used in any plan. The editor lists them under "Workload" and "Further options of fio".

Values of variables (`${SIZE}`, `$ncpus`) and files that the job file includes are given with it. A plan can be exported
as a job file; imported again, it has the same points.

Jobs that fio runs at the same time become the [streams](plans.md#streams-with-different-workloads) of one part, at most
eight. `stonewall`, or `wait_for` of all jobs before, begins a new part. The plan's note lists the differences from fio.

Sizes and times mean what they mean to fio:

- `k`, `kb` and `ki` are 1,024 bytes, but `KiB` is 1,000; with `kb_base=1000`, `k` is 1,000 and `KiB` is 1,024.
- fio reads a time with another unit than us, ms, s, m, h or d in microseconds: `90sec`, `1m30s`. Here they are seconds,
  and the note says so.

Options with conditions:

- Every pattern except `read` and `randread` destroys data; this includes trims, which need a block device. The host's
  policy must allow it, and the run must be armed with the serial numbers of the drives.
- `loops` multiplies the amount, so estimates and write limits count every loop.
- `verify` writes an amount, then reads it back.
- An amount is rounded up to whole blocks of all jobs, and estimates count that.
- A mix with rate limits counts as if it only wrote: while reads have reached their limit, fio writes.
- `offset` and `offset_increment` must keep the used part inside the device or file. They are not for directories.
- Jobs of `numjobs` have files of their own unless `filename` is given. Here they share files of the same total size.
  With `filename`, sequential jobs all start at the same offset: `offset_increment: 0`.
- A job without `runtime` and `io_size` ends when it has gone through its size. Of a size in percent or of a whole
  device, that is `passes`.
- `sg` sends SCSI commands, so the target must be a whole SCSI drive: commands to a partition or volume could reach
  the data beside it.
- `io_uring_cmd` sends NVMe commands, so the target must be a whole NVMe drive (/dev/nvme0n1). The worker checks and
  holds this block device, and fio opens the generic device of the same namespace (/dev/ng0n1). It needs Linux 5.19 and
  fio 3.31. Blocks are at most as large as one command of the drive. There are no trims and no fsync.
- The kernel does not count commands of `sg` and `io_uring_cmd`: their results have no device counters, and a target
  with `max_write_bytes` refuses their writes.

## Factors

| option | factor | note |
| --- | --- | --- |
"""

_TITLES = {
    Meaning.SEVERAL: "Without a factor",
    Meaning.ALWAYS: "The same in every trial; other values are refused",
    Meaning.LEFT_OUT: "Ignored, and listed in the plan's note",
}


def options_page() -> str:
    options = list(dict.fromkeys(ALLOWED.values()))
    taken = [option for option in options if option.factor and not _same(option)]
    others = [option for option in options if not option.factor]
    return (
        _HEAD
        + "".join(f"| {_names(option)} | `{option.factor}` | {option.note} |\n" for option in taken)
        + f"\nOther options are factors of the same name: {', '.join(map(_names, filter(_same, options)))}.\n"
        + "".join(
            f"\n## {title}\n\n| options | meaning |\n| --- | --- |\n"
            + _rows((_names(option), option.note) for option in others if option.meaning is meaning)
            for meaning, title in _TITLES.items()
        )
        + "\n## Refused\n\n| options | reason |\n| --- | --- |\n"
        + _rows((f"`{name}`", reason) for name, reason in REFUSED.items())
    )


def _same(option: Option) -> bool:
    return option.name == option.factor and not option.note


def _names(option: Option) -> str:
    return ", ".join(f"`{name}`" for name in (option.name, *option.aliases))


def _rows(notes: Iterable[tuple[str, str]]) -> str:
    """A row of each note, with the names that have it."""
    names_by_note: dict[str, list[str]] = {}
    for name, note in notes:
        names_by_note.setdefault(note, []).append(name)
    return "".join(f"| {', '.join(names)} | {note} |\n" for note, names in names_by_note.items())


if __name__ == "__main__":
    print(options_page(), end="")
