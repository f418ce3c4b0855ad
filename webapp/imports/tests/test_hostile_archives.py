"""Whatever an archive contains, the work of reading it is bounded by its size and by fixed limits."""

import gzip
import io
import itertools
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile

from webapp.imports.reading.contents import content, read, read_in_turn
from webapp.imports.reading.limits import MIB, Budget, LeftOut, Limits, Read, Refused
from webapp.imports.services import LIMITS, MAX_REFUSED, add_uploads, begin_import
from webapp.imports.storing import BATCH
from webapp.imports.tests.hostile_archives import ATTACKS, extended, header, record, sparse_members
from webapp.tests.peak import measured_cost

pytestmark = pytest.mark.slow
MAX_CPU_S = 6.0  # usually below 1; some attacks took hours
MAX_MEMORY = 110 * MIB
Items = list[Read | Refused | LeftOut]


def _read(tmp_path: Path, data: bytes, limits: Limits = LIMITS) -> Items:
    path = tmp_path / "file"
    path.write_bytes(data)
    return list(read(path, limits))


def _codes(items: Items) -> dict[str, str]:
    """Code by path."""
    return {item.path: item.code for item in items if isinstance(item, Refused)}


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda attack: attack.__name__)
def test_an_attack_costs_little_and_has_a_code(tmp_path: Path, attack: Callable[[], bytes]) -> None:
    path = tmp_path / "file"
    path.write_bytes(attack())
    codes, name_characters = set(), 0
    with measured_cost() as cost:
        for item in read(path, LIMITS):
            name_characters += len(item.path)
            if isinstance(item, Refused):
                codes.add(item.code)
    assert codes >= ATTACKS[attack], codes
    assert cost.cpu_s < MAX_CPU_S
    assert cost.memory_bytes < MAX_MEMORY
    assert name_characters < MIB


def test_sparse_files_are_refused_and_the_files_after_them_are_read(tmp_path: Path) -> None:
    """In the three forms that GNU tar writes: an own header, and extended headers with the map in them or in front."""
    text = b"iops\n1\n"
    tar = gzip.decompress(sparse_members(2))
    for version in (b"0", b"1"):
        keys = record(b"GNU.sparse.major", version) + record(b"GNU.sparse.realsize", b"99999999999")
        tar += extended(b"x", keys) + header(b"pax" + version, b"0", 512) + b"1" * 512
    items = _read(tmp_path, tar + header(b"after", b"0", len(text)) + text.ljust(512, b"\0"))
    assert _codes(items) == dict.fromkeys(("file/s0", "file/s1", "file/pax0", "file/pax1"), "import_sparse")
    assert [item for item in items if isinstance(item, Read)] == [Read("file/after", text.decode())]


def _tar_gz(count: int) -> bytes:
    return gzip.compress(b"".join(header(b"%d" % n, b"0") for n in range(count)))


def _zip(count: int) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as archive:
        for n in range(count):
            archive.writestr(f"{n}", b"")
    return buffer.getvalue()


@pytest.mark.parametrize("make", [_tar_gz, _zip])
def test_entries_have_a_limit_whatever_they_are(tmp_path: Path, make: Callable[[int], bytes]) -> None:
    """Each entry counts twice in a tar archive: its header and its file."""
    assert not _codes(_read(tmp_path, make(100), Limits(entries=200)))
    items = _read(tmp_path, make(500), Limits(entries=200))
    assert set(_codes(items).values()) == {"import_too_many_entries"}
    assert len(items) <= 203
    folders = gzip.compress(b"".join(header(b"%d/" % n, b"5") for n in range(500)))
    assert _codes(_read(tmp_path, folders, Limits(entries=200)))["file"] == "import_too_many_entries"
    parts = gzip.compress(b"text") + gzip.compress(b"") * 500
    assert set(_codes(_read(tmp_path, parts, Limits(entries=200))).values()) == {"import_too_many_entries"}
    assert not _codes(_read(tmp_path, parts, Limits(entries=501)))


@pytest.mark.django_db
@pytest.mark.parametrize("make", [_tar_gz, _zip])
def test_an_upload_of_files_without_results_ends_early(make: Callable[[int], bytes]) -> None:
    imported = begin_import(title="Empty", pattern="", given={}, by=None)
    good = SimpleUploadedFile("a.csv", b"direction,block_size,iops\nread,4k,90000\n")
    with measured_cost() as cost:
        stored = add_uploads(imported, [good, SimpleUploadedFile("b", make(60_000))])
    assert MAX_REFUSED < stored.files < MAX_REFUSED + 2 * BATCH
    assert stored.results == 1
    assert stored.refused.total() == stored.files - 1
    assert imported.files.latest("id").code == "import_too_many_refused"
    imported.refresh_from_db()
    assert (imported.files_read, imported.files_refused) == (stored.files, stored.refused.total())
    assert cost.cpu_s < MAX_CPU_S


@pytest.mark.parametrize("make", [_tar_gz, _zip])
def test_names_have_a_limit_together(tmp_path: Path, make: Callable[[int], bytes]) -> None:
    assert set(_codes(_read(tmp_path, make(500), Limits(name_bytes=100))).values()) == {"import_too_many_entries"}


def test_bytes_of_files_that_are_left_out_count(tmp_path: Path) -> None:
    """Ten files of 25 MiB are all too large, and all must be unpacked to find the next one."""
    large = gzip.compress((header(b"z", b"0", 25 * MIB) + b"a" * (25 * MIB)) * 4, 6)
    limits = Limits(total_bytes=30 * MIB, ratio=100_000)
    items = _read(tmp_path, large, limits)
    assert _codes(items)["file"] == "import_too_many_bytes"
    budget = Budget(limits)
    budget.count_on_disk(len(large))
    read_bytes = 0

    class Counting(io.BytesIO):
        def read(self, count: int | None = -1, /) -> bytes:
            nonlocal read_bytes
            data = super().read(count)
            read_bytes += len(data)
            return data

    list(content(Counting(large), "file", budget))
    assert read_bytes < len(large) * 2 // 3


def test_the_time_of_unpacking_has_a_limit_and_that_of_the_caller_does_not_count(tmp_path: Path) -> None:
    items = _read(tmp_path, _tar_gz(20_000), Limits(cpu_s=0.01, cpu_s_per_mib=0.0))
    assert "import_cpu_time" in _codes(items).values()
    ticks = itertools.count()
    budget = Budget(Limits(cpu_s=100.0), clock=lambda: float(next(ticks)))
    for _ in range(90):
        budget.start_clock()
        budget.stop_clock()  # one tick between both, and many without a clock
        next(ticks)
    budget.count_entry()
    assert budget.limit_reached is None


def test_the_ratio_is_that_of_all_files_of_a_request_together(tmp_path: Path) -> None:
    """Each of these archives is small enough to have no ratio of its own."""
    paths = []
    for n in range(9):
        path = tmp_path / f"{n}.csv.gz"
        path.write_bytes(gzip.compress(b"a" * (15 * MIB)))
        paths.append((path.name, path))
    codes = _codes(list(read_in_turn(paths, LIMITS)))
    assert codes == {"": "import_ratio"}


def test_a_tar_archive_of_each_kind_of_header_is_read(tmp_path: Path) -> None:
    """A long name of GNU tar, a path and a size of pax, a global header, a binary size, a folder, a link."""
    text = b"iops\n1\n".ljust(512, b"\0")
    long, pax = b"l" * 150, "größe".encode() * 20
    tar = (
        extended(b"g", record(b"comment", b"x")) + header(b"d/", b"5")
        + extended(b"K", b"to" * 100) + extended(b"L", long + b"\0") + header(b"short", b"0", 7) + text
        + extended(b"x", record(b"path", pax) + record(b"size", b"7")) + header(b"other", b"0") + text
        + header(b"link", b"2", 5) + header(b"last", b"\0", 7) + text
        + b"\0" * 1024
    )  # fmt: skip
    items = _read(tmp_path, tar)
    texts = {item.path: item.text for item in items if isinstance(item, Read)}
    assert texts == dict.fromkeys((f"file/{long.decode()}", f"file/{pax.decode()}", "file/last"), "iops\n1\n")
    assert _codes(items) == {"file/link": "import_link"}
