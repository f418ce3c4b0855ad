"""No text of megabytes keeps a parser busy: the work is proportional to the text."""

import time

import pytest

from webapp.imports import formats
from webapp.imports.formats import FORMATS
from webapp.imports.formats.tests.examples import EXAMPLES
from webapp.imports.values import ImportRefused

pytestmark = pytest.mark.slow
BYTES, BYTES_IN_LINES = 8 * 1024**2, 2 * 1024**2
MAX_CPU_S = 20.0  # for all texts of a format; usually below 5, and hours where the work is quadratic
# In one line, and in lines that are as long, and as many, as they may be.
UNBROKEN = (" ", "1", "{", '{"a":', "[1,", ": ", "1,", "dd a")
IN_LINES = (" ", "1,", '"', "dd if=/", "iozone -i 0 ", "Timing ", "1 1+1 records in ")
DEPTHS = {"lists": "[" * 100_000, "objects": '{"jobs":' * 100_000, "unknown": '{"x":' * 100_000}
DIGITS = "9" * 1_000_000


def _texts(name: str) -> list[str]:
    example = next(path for path in EXAMPLES if path.parent.name == name).read_text()
    texts = [atom * (BYTES // len(atom)) for atom in UNBROKEN]
    for atom in IN_LINES:
        for length in (60, 90_000):
            line = atom * (length // len(atom)) + "\n"
            texts.append(example + line * (BYTES_IN_LINES // len(line)))
    return texts


def _parse(name: str, text: str) -> None:
    module = FORMATS[name]
    module.sniff(text[: formats.HEAD_CHARACTERS])
    try:
        module.parse(text)
    except (ImportRefused, OverflowError):
        return


@pytest.mark.parametrize("name", FORMATS)
def test_a_hostile_text_takes_no_time(name: str) -> None:
    texts = _texts(name)
    started_s = time.process_time()
    for text in texts:
        _parse(name, text)
    assert time.process_time() - started_s < MAX_CPU_S


@pytest.mark.parametrize("name", ["fio-json", "elbencho"])
def test_deep_json_is_refused(name: str) -> None:
    for text in DEPTHS.values():
        with pytest.raises(ImportRefused):
            FORMATS[name].parse(text)


@pytest.mark.parametrize("place", ['"bw":{}', '"bw":0.{}', '"bw":1e{}', '"io_bytes":{}', '"bw":-{}', '"x":{}'])
def test_a_number_of_a_million_digits_takes_no_time(place: str) -> None:
    started_s = time.process_time()
    _parse("fio-json", '{"jobs":[{"read":{' + place.replace("{}", DIGITS) + "}}]}")
    _parse("elbencho", '{"phase_type":"READ","last_done":{"iops":"' + DIGITS + '"}}')
    _parse("plain-csv", f"iops,iodepth,pattern\n{DIGITS[:99_000]},{DIGITS[:999]},randread\n")
    assert time.process_time() - started_s < 5


@pytest.mark.parametrize("column", ["c{}", "latency_p1.{:06}_us", "iops"])
def test_a_csv_with_very_many_columns_takes_no_time(column: str) -> None:
    count = 95_000 // (len(column.format(99_999)) + 1)  # of the longest line that is read
    names = ["iops", "pattern", "iodepth", *(column.format(number) for number in range(count))]
    started_s = time.process_time()
    _parse("plain-csv", ",".join(names) + "\n" + ",".join("1" for _ in names) + "\n")
    assert time.process_time() - started_s < 1  # below 0.3; 2 if each name is compared with all others
