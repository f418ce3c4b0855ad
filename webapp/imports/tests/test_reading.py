import bz2
import gzip
import io
import lzma
import os
import random
import re
import stat
import subprocess
import sys
import tarfile
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from webapp.imports.reading.contents import read, read_all
from webapp.imports.reading.limits import LeftOut, Limits, Read, Refused

Pack = Callable[[bytes], bytes]
TEXT = b"iops,pattern\n1,randread\n"


def _zip(files: Mapping[str, bytes], *, compressed: bool = True) -> bytes:
    buffer = io.BytesIO()
    kind = zipfile.ZIP_DEFLATED if compressed else zipfile.ZIP_STORED
    with zipfile.ZipFile(buffer, "w", kind) as archive:
        for name, data in files.items():
            archive.writestr(name, data)
    return buffer.getvalue()


def _tar(files: Mapping[str, bytes], mode: str = "w") -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode=mode) as archive:  # type: ignore[call-overload]
        for name, data in files.items():
            entry = tarfile.TarInfo(name)
            entry.size = len(data)
            archive.addfile(entry, io.BytesIO(data))
    return buffer.getvalue()


def _read(tmp_path: Path, data: bytes, limits: Limits | None = None) -> tuple[dict[str, str], dict[str, str]]:
    """(path -> text, path -> reason) of one file."""
    path = tmp_path / "file"
    path.write_bytes(data)
    return _sorted(list(read(path, limits)))


def _sorted(found: list[Read | Refused | LeftOut]) -> tuple[dict[str, str], dict[str, str]]:
    texts = {one.path: one.text for one in found if isinstance(one, Read)}
    return texts, {one.path: one.reason for one in found if isinstance(one, Refused)}


def test_files_are_in_the_natural_order_of_their_names(tmp_path: Path) -> None:
    names = ["d2/b.csv", "d10/a.csv", "iodepth-1.csv", "iodepth-2.csv", "iodepth-16.csv"]
    files = dict.fromkeys(sorted(names), TEXT)
    assert list(_read(tmp_path, _zip(files))[0]) == [f"file/{name}" for name in names]
    for name in names:
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(TEXT)
    assert [one.path for one in read(tmp_path / "folder")] == names


def test_a_folder(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "1.csv").write_bytes(TEXT)
    (tmp_path / "0.csv").write_bytes(TEXT)
    texts, refused = _sorted(list(read(tmp_path)))
    assert texts == {"0.csv": TEXT.decode(), "a/b/1.csv": TEXT.decode()}
    assert not refused


@pytest.mark.parametrize(
    "data",
    [
        _zip({"x/1.csv": TEXT}),
        _tar({"x/1.csv": TEXT}),
        _tar({"x/1.csv": TEXT}, "w:gz"),
        _tar({"x/1.csv": TEXT}, "w:bz2"),
        _tar({"x/1.csv": TEXT}, "w:xz"),
        gzip.compress(_zip({"x/1.csv": TEXT})),
    ],
    ids=["zip", "tar", "tar.gz", "tar.bz2", "tar.xz", "zip.gz"],
)
def test_archives(tmp_path: Path, data: bytes) -> None:
    texts, refused = _read(tmp_path, data)
    assert texts == {"file/x/1.csv": TEXT.decode()}
    assert not refused


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_one_packed_file(tmp_path: Path, pack: Pack) -> None:
    path = tmp_path / "log.csv.gz"
    path.write_bytes(pack(TEXT) + pack(TEXT))  # two parts, as gzip and its like allow
    texts, _ = _sorted(list(read(path)))
    assert texts == {"log.csv": 2 * TEXT.decode()}


def _nested(depth: int) -> bytes:
    data = TEXT
    for _ in range(depth):
        data = _zip({"in": data})
    return data


def test_nested_archives_to_depth_5(tmp_path: Path) -> None:
    texts, _ = _read(tmp_path, _nested(5))
    assert texts == {"file/in/in/in/in/in": TEXT.decode()}
    texts, refused = _read(tmp_path, _nested(6))
    assert not texts
    assert "nested more than 5 deep" in refused["file/in/in/in/in/in"]


@pytest.mark.parametrize(
    ("data", "text"),
    [
        ("größer".encode(), "größer"),
        (b"\xef\xbb\xbfiops", "iops"),
        ("größer".encode("utf-16"), "größer"),
        (b"\xfe\xff" + "größer".encode("utf-16-be"), "größer"),
        ("größer".encode("latin-1"), "größer"),
    ],
    ids=["utf-8", "utf-8 with mark", "utf-16", "utf-16 big-endian", "latin-1"],
)
def test_encodings(tmp_path: Path, data: bytes, text: str) -> None:
    assert _read(tmp_path, data)[0] == {"file": text}


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\x89PNG\0\0\0", "binary"),
        (b"\xff\xfe\x00\xd8", "not valid UTF-16"),
        ("a\0b".encode("utf-16"), "binary"),
        (b"7z\xbc\xaf\x27\x1c123", "7z archives cannot be read"),
        (b"\x28\xb5\x2f\xfd123", "Zstandard archives cannot be read"),
        (gzip.compress(os.urandom(1000))[:500], "truncated"),
        (bz2.compress(TEXT)[:-5], "truncated"),
        (b"\x1f\x8bnonsense", "damaged"),
        (_zip({"a": TEXT})[:-30], "truncated|damaged"),
        (b"PK\x03\x04" + b"x" * 100, "truncated"),
        (_tar({"a": TEXT * 100})[:700], "damaged"),
    ],
    # Made from the data, they would contain the time, and differ between the processes of one test run.
    ids=["png", "utf-16", "utf-16 with NUL", "7z", "zstd", "gzip", "bzip2", "no gzip", "zip", "no zip", "tar"],
)
def test_damaged_files_are_refused_with_a_reason(tmp_path: Path, data: bytes, reason: str) -> None:
    texts, refused = _read(tmp_path, data)
    assert not texts
    ((_, found),) = refused.items()
    assert re.search(reason, found), found
    assert found.endswith(".")


def test_a_damaged_file_in_an_archive_does_not_stop_the_others(tmp_path: Path) -> None:
    data = _zip({"a.txt": b"A" * 100, "b.txt": TEXT}, compressed=False).replace(b"A" * 100, b"B" * 100)
    texts, refused = _read(tmp_path, data)
    assert texts == {"file/b.txt": TEXT.decode()}
    assert "CRC" in refused["file/a.txt"]


def test_a_large_file_is_refused(tmp_path: Path) -> None:
    _, refused = _read(tmp_path, b"x" * 2_000_001, Limits(file_bytes=2_000_000))
    assert "larger than" in refused["file"]
    _, refused = _read(tmp_path, _tar({"a": b"x" * 2_000_001, "b": TEXT}), Limits(file_bytes=2_000_000))
    assert "larger than" in refused["file/a"]


def test_a_zip_bomb_is_refused(tmp_path: Path) -> None:
    bomb = _zip({"zeros": b"0" * 20_000_000, "b": TEXT})
    texts, refused = _read(tmp_path, bomb)
    assert "200 times" in refused["file/zeros"]
    assert texts == {"file/b": TEXT.decode()}


@pytest.mark.parametrize("pack", [gzip.compress, bz2.compress, lzma.compress])
def test_a_packed_bomb_is_refused(tmp_path: Path, pack: Pack) -> None:
    texts, refused = _read(tmp_path, pack(b"0" * 20_000_000))
    assert not texts
    assert "200 times" in refused["file"]


def test_a_zip_that_lies_about_sizes_is_refused(tmp_path: Path) -> None:
    data = bytearray(_zip({"zeros": b"0" * 5_000_000}))
    directory = data.index(b"PK\x01\x02")
    data[directory + 24 : directory + 28] = (10).to_bytes(4, "little")
    texts, refused = _read(tmp_path, bytes(data))
    assert not texts
    assert "unpacked" in refused["file/zeros"]


def test_the_total_of_all_files_is_limited(tmp_path: Path) -> None:
    data = _zip({f"{n}.txt": os.urandom(1000).hex().encode() for n in range(100)})
    texts, refused = _read(tmp_path, data, Limits(total_bytes=50_000))
    assert len(texts) == 25
    assert "Number of files left out: 75." in refused[""]


def test_the_total_of_a_packed_tar_is_limited_while_it_is_unpacked(tmp_path: Path) -> None:
    files = {f"{n}.txt": os.urandom(1000).hex().encode() for n in range(100)}
    texts, refused = _read(tmp_path, _tar(files, "w:gz"), Limits(total_bytes=50_000))
    assert 10 < len(texts) < 25
    assert "The rest is left out." in refused["file"]


def test_of_too_many_files_the_first_are_read_and_the_others_are_counted(tmp_path: Path) -> None:
    files = {f"d{n % 3}/{n}": f"{n}".encode() for n in range(300)}
    for data in (_zip(files), _tar(files), _tar(files, "w:gz"), _zip({"a.zip": _zip(files)}, compressed=False)):
        texts, refused = _read(tmp_path, data, Limits(files=200))
        own = max(1, data.count(b"PK\x05\x06"))  # the archives count too
        assert len(texts) == 200 - own
        assert list(refused) == [""]
        words = f"At most 200 files and 8,192 MiB are read at once. Number of files left out: {100 + own}."
        assert refused[""].startswith(words)


def test_of_a_folder_with_too_many_files_the_first_are_read_and_the_others_are_counted(tmp_path: Path) -> None:
    for n in range(30):
        path = tmp_path / ("sub/more" if n % 3 == 0 else ".") / str(n)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("1")
    for n in range(7):
        (tmp_path / f"empty{n}").mkdir()
    for limit in (0, 1, 5, 19, 20, 21, 29):
        texts, refused = _sorted(list(read(tmp_path, Limits(files=limit))))
        assert len(texts) == limit
        assert f"Number of files left out: {30 - limit}." in refused[""]
    assert not _sorted(list(read(tmp_path, Limits(files=30))))[1]
    assert [one.path for one in read(tmp_path, Limits(files=3))][:3] == ["1", "2", "4"]


def test_empty_folders_do_not_hide_files_after_them(tmp_path: Path) -> None:
    for n in range(20):
        (tmp_path / f"{n}").mkdir()
    (tmp_path / "last.csv").write_bytes(TEXT)
    assert _sorted(list(read(tmp_path, Limits(files=2)))) == ({"last.csv": TEXT.decode()}, {})


LOGS = ("d/t_bw.1.log", "d/t_bw.2.log", "d/t_iops.1.log", "d/t_x_bw.1.log", "d/a.json", "d/sub/x", "d/z.json")


@pytest.mark.parametrize("make", [_zip, _tar])
def test_logs_of_a_trial_come_together_after_the_other_files_of_their_folder(
    tmp_path: Path, make: Callable[[Mapping[str, bytes]], bytes]
) -> None:
    for seed in range(5):
        names = random.Random(seed).sample(LOGS, len(LOGS))
        logs = [path for path in _read(tmp_path, make(dict.fromkeys(names, TEXT)))[0] if path.endswith(".log")]
        assert logs == [f"file/{name}" for name in LOGS[:4]]
        assert [*_read(tmp_path, make(dict.fromkeys(names, TEXT)))[0]][-4:] == logs
    for name in LOGS:
        path = tmp_path / "folder" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(TEXT)
    assert [one.path for one in read(tmp_path / "folder")] == ["d/a.json", "d/sub/x", "d/z.json", *LOGS[:4]]


def test_logs_of_a_tar_that_ends_early_are_refused(tmp_path: Path) -> None:
    data = _tar({"t.json": TEXT, "t_bw.1.log": TEXT, "t_bw.2.log": TEXT})
    texts, refused = _read(tmp_path, data[: 5 * 512 + 10])
    assert list(texts) == ["file/t.json"]
    assert refused["file/t_bw.1.log"] == "The archive ends before all logs of its tests are read."
    assert "damaged" in refused["file"]


def test_several_paths_are_read_as_one_folder_with_names_from_where_they_differ(tmp_path: Path) -> None:
    for name in ("a/x/t_bw.2.log", "a/x/t.json", "b/x/t.json", "c.csv"):
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(TEXT)
    paths = [tmp_path / name for name in ("a/x/t_bw.2.log", "a/x/t.json", "b", "c.csv", "c.csv")]
    assert [one.path for one in read_all(paths)] == ["a/x/t.json", "a/x/t_bw.2.log", "b/x/t.json", "c.csv"]
    assert [one.path for one in read_all([tmp_path / "a"])] == ["x/t.json", "x/t_bw.2.log"]
    assert [one.path for one in read_all(paths[:2])] == ["t.json", "t_bw.2.log"]
    assert "left out: 2." in _sorted(list(read_all(paths, Limits(files=2))))[1][""]


def test_a_zip_with_more_files_than_its_first_form_can_count(tmp_path: Path) -> None:
    """More than 65,535 files need zip64. Parts of the directory are read with zipfile."""
    data = b"in front" + _zip({f"{n:05}": b"" for n in range(66_000)}, compressed=False)
    (tmp_path / "file").write_bytes(data)
    found = [one.path for one in read(tmp_path / "file") if isinstance(one, Read)]
    assert not found  # zip files with other bytes in front are not recognised
    (tmp_path / "file").write_bytes(data[8:])
    found = [one.path for one in read(tmp_path / "file") if isinstance(one, Read)]
    assert found == [f"file/{n:05}" for n in range(66_000)]


@pytest.mark.parametrize("name", ["../up", "/absolute", "a/../../b", "c:\\windows", "C:x", "n" * 1001])
@pytest.mark.parametrize("make", [_zip, _tar])
def test_paths_out_of_the_archive_are_refused(
    tmp_path: Path, name: str, make: Callable[[Mapping[str, bytes]], bytes]
) -> None:
    texts, refused = _read(tmp_path, make({name: TEXT, "good": TEXT}))
    assert texts == {"file/good": TEXT.decode()}
    ((_, reason),) = refused.items()
    assert "path" in reason


def test_links_in_archives_are_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for kind in (tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE, tarfile.CHRTYPE):
            entry = tarfile.TarInfo(f"link{kind.decode()}")
            entry.type, entry.linkname = kind, "/etc/passwd"
            archive.addfile(entry)
    texts, refused = _read(tmp_path, buffer.getvalue())
    assert not texts
    assert set(refused.values()) == {"Links and devices are not read."}
    assert len(refused) == 4
    link = zipfile.ZipInfo("link")
    link.external_attr = (stat.S_IFLNK | 0o777) << 16
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w") as zipped:
        zipped.writestr(link, "/etc/passwd")
    assert _read(tmp_path, buffer.getvalue())[1] == {"file/link": "Links are not followed."}


def test_links_and_devices_in_folders_are_refused(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "link").symlink_to("/etc/passwd")
    (folder / "loop").symlink_to(folder)
    os.mkfifo(folder / "pipe")
    texts, refused = _sorted(list(read(folder)))
    assert not texts
    assert refused == {
        "link": "Links are not followed.",
        "loop": "Links are not followed.",
        "pipe": "This is not a regular file.",
    }
    assert _sorted(list(read(folder / "link")))[1] == {"link": "Links are not followed."}


def test_folders_nested_too_deep_are_refused(tmp_path: Path) -> None:
    deep = tmp_path.joinpath(*["d"] * 12)
    deep.mkdir(parents=True)
    (deep / "a").write_bytes(TEXT)
    texts, refused = _sorted(list(read(tmp_path, Limits(folders=10))))
    assert not texts
    assert "nested more than 10 deep" in next(iter(refused.values()))


def test_an_encrypted_file_is_refused(tmp_path: Path) -> None:
    data = bytearray(_zip({"a": TEXT}))
    data[data.index(b"PK\x01\x02") + 8] |= 1
    assert "encrypted" in _read(tmp_path, bytes(data))[1]["file/a"]


def test_a_huge_header_of_tar_is_refused(tmp_path: Path) -> None:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        entry = tarfile.TarInfo("extended")
        entry.type, entry.size = tarfile.XHDTYPE, 3_000_000
        archive.addfile(entry, io.BytesIO(b"0" * 3_000_000))
    assert "header" in _read(tmp_path, buffer.getvalue())[1]["file"]


def test_a_missing_file_is_refused(tmp_path: Path) -> None:
    assert "cannot be read" in _sorted(list(read(tmp_path / "none")))[1]["none"]


def test_the_memory_stays_below_350_mb(tmp_path: Path) -> None:
    """A text of the largest size with a character outside Latin-1 takes most: four bytes a character.

    Measured: 280 MB in most processes, of which 132 are Django and the formats, and 327 MB in one of five.
    """
    path = tmp_path / "large.tar.gz"
    text = ("1234567890" * 2_500_000).encode() + "😀".encode()
    with tarfile.open(path, "w:gz", compresslevel=1) as archive:
        for name in ("a", "b", "c"):
            entry = tarfile.TarInfo(name)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text))
    program = (
        "import django, re, sys; django.setup(); from pathlib import Path\n"
        "from webapp.imports.files import read_files; from webapp.imports.reading.contents import read\n"
        "from webapp.imports.reading.limits import Limits\n"
        "read = read_files(read(Path(sys.argv[1]), Limits(ratio=10_000)), '', {})\n"
        # ru_maxrss would also count the process of the tests, before exec
        "print(*(one.reason for one in read), re.search(r'VmHWM:\\s*(\\d+)', Path('/proc/self/status').read_text())[1])"
    )
    output = subprocess.run([sys.executable, "-c", program, str(path)], capture_output=True, text=True, check=True)
    assert output.stdout.count("not known") == 3
    assert int(output.stdout.split()[-1]) / 1024 < 350
