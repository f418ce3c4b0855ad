"""fio job text: the command that reads it, and options that jobs share."""

from worker.contract.fio_options import WRITE_LIMITS
from worker.contract.workload import Buffers, FioWorkload, Stream, TargetKind, Workload
from worker.recipes.fio.names import escaped_path
from worker.recipes.names import target_names

# fio reads the job text from standard input (`-`), so there is no file to write or remove.
COMMAND = ("fio", "--output-format=json+", "--status-interval=1", "--eta=never", "-")

Options = list[tuple[str, str]]


def workload_of(stream: Stream) -> FioWorkload:
    assert isinstance(stream.workload, FioWorkload)
    return stream.workload


def job_text(section: str, options: Options) -> str:
    return "\n".join([f"[{section}]", *(f"{name}={value}" for name, value in options)]) + "\n"


def flag(on: bool) -> str:
    return "1" if on else "0"


def filename(stream: Stream) -> Options:
    """The `filename` option. A mistyped /dev name must not create a file."""
    names = ":".join(escaped_path(name) for name in target_names(stream))
    own_files = stream.target.kind is TargetKind.DIRECTORY
    return [("filename", names)] if own_files else [("filename", names), ("allow_file_create", "0")]


def file_names(stream: Stream) -> tuple[str, ...]:
    """Relative file names in a directory target; () for other kinds."""
    return target_names(stream) if stream.target.kind is TargetKind.DIRECTORY else ()


def content(work: Workload) -> Options:
    """Options for the data. Incompressible data is one random buffer; scramble_buffers varies its blocks cheaply."""
    options = work.options.wanted() if isinstance(work, FioWorkload) else {}
    return [_CONTENT[work.buffers], *((name, _text(options[name])) for name in DATA_OPTIONS if name in options)]


def further(work: FioWorkload) -> Options:
    """The further options of the workload that are not about data. fio separates limits of reads and writes by a comma.

    fio would write the state of a verification to a file.
    """
    values = work.options.wanted()
    pairs = {name: values.pop(write, None) for name, write in WRITE_LIMITS.items()}
    options = {name: _text(value) for name, value in values.items() if name not in DATA_OPTIONS}
    options |= {name: f"{options.get(name, '')},{value}" for name, value in pairs.items() if value is not None}
    return [*options.items(), *([("verify_state_save", "0")] if work.verifies else [])]


def _text(value: object) -> str:
    """Values contain `+` for fio's comma, which separates the levels of a factor."""
    return flag(value) if isinstance(value, bool) else str(value).replace("+", ",")


DATA_OPTIONS = (
    "dedupe_percentage",
    "dedupe_mode",
    "dedupe_working_set_percentage",
    "buffer_compress_percentage",
    "buffer_compress_chunk",
    "buffer_pattern",
)  # also of prefilled files


_CONTENT = {
    Buffers.INCOMPRESSIBLE: ("scramble_buffers", "1"),
    Buffers.REFILLED: ("refill_buffers", "1"),
    Buffers.REPEATED: ("scramble_buffers", "0"),
    Buffers.ZEROES: ("zero_buffers", "1"),
}
