"""Generate the page about fio's options: `python -m worker.recipes.fio.table > docs/reference/fio-options.md`."""

from worker.recipes.fio.options import ALLOWED, Meaning, Option
from worker.recipes.fio.refused_options import REFUSED

_HEAD = """# fio's options in job files

A fio job file can be opened as a plan. Each of fio's options becomes a factor of the plan, is ignored because it does
not change the measurement, or is refused with a reason. The same factors can be used in any plan. The editor lists
them under "Workload" and "Further options of fio".

A trial runs one workload, so jobs that fio would run at the same time are refused: put `stonewall` into all jobs but
the first.

Options with conditions:

- Every pattern except `read` and `randread` destroys data; this includes trims, which need a block device. The host's
  policy must allow it, and the run must be armed with the serial numbers of the drives.
- `loops` multiplies the amount, so estimates and write limits count every loop.
- `verify` writes an amount, then reads it back.
- An amount is rounded up to whole blocks of all jobs, and estimates count that.
- A mix with rate limits counts as if it only wrote: while reads have reached their limit, fio writes.
- `offset` and `offset_increment` must keep the used part inside the device or file. They are not for directories.
- `sg` sends SCSI commands, so the target must be a whole SCSI drive: commands to a partition or volume could reach
  the data beside it.

## Factors

| option | factor | note |
| --- | --- | --- |
"""


def page() -> str:
    options = list(dict.fromkeys(ALLOWED.values()))
    taken = [option for option in options if option.factor and not _same(option)]
    ignored = [option for option in options if not option.factor]
    return (
        _HEAD
        + "".join(f"| {_names(option)} | `{option.factor}` | {option.note} |\n" for option in taken)
        + f"\nOther options are factors of the same name: {', '.join(map(_names, filter(_same, options)))}.\n"
        + "\n## Ignored\n\n| options | reason |\n| --- | --- |\n"
        + "".join(f"| {', '.join(names)} | {note} |\n" for note, names in _by_note(ignored).items())
        + "\n## Refused\n\n| options | reason |\n| --- | --- |\n"
        + "".join(f"| {', '.join(names)} | {reason} |\n" for reason, names in _refused().items())
    )


def _same(option: Option) -> bool:
    return option.name == option.factor and not option.note


def _names(option: Option) -> str:
    return ", ".join(f"`{name}`" for name in (option.name, *option.aliases))


def _by_note(options: list[Option]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for option in options:
        note = f"{option.note}; the plan's note says so" if option.meaning is Meaning.LOGGING else option.note
        found.setdefault(note, []).append(_names(option))
    return found


def _refused() -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for name, reason in REFUSED.items():
        found.setdefault(reason, []).append(f"`{name}`")
    return found


if __name__ == "__main__":
    print(page(), end="")
