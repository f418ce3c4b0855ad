"""The parts of `make release` and of its preparation; the walk of the whole recipe takes minutes."""

import hashlib
import subprocess
import tarfile
from datetime import UTC, datetime
from pathlib import Path

import pytest
import yaml

import dev.release.__main__ as release
from dev import worker_lock
from dev.console import ToolError
from dev.release import migrations, prepare, sbom
from dev.release.prepare import released_changes
from dev.stack.state import REPOSITORY

DAY = "2027-01-31"
WRITTEN_BEFORE = "# Changes\n\n## Unreleased\n\n## 1.0.0\n\nFirst.\n"
AFTER_A_RELEASE = "# Changes\n\n## Unreleased\n\n- New.\n\n## 1.0.0, 2027-01-01\n\nFirst.\n"


@pytest.fixture
def released_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A list of released migrations that has all of the repository."""
    path = tmp_path / "migrations.sha256"
    path.write_text("".join(migrations.hash_lines()))
    monkeypatch.setattr(migrations, "HASHES", path)
    return path


def test_a_section_that_was_written_before_gets_the_date() -> None:
    assert released_changes(WRITTEN_BEFORE, "1.0.0", DAY) == WRITTEN_BEFORE.replace("1.0.0", f"1.0.0, {DAY}")


def test_the_entries_under_unreleased_become_the_section_of_the_version() -> None:
    expected = f"# Changes\n\n## Unreleased\n\n## 1.0.1, {DAY}\n\n- New.\n\n## 1.0.0, 2027-01-01\n\nFirst.\n"
    assert released_changes(AFTER_A_RELEASE, "1.0.1", DAY) == expected


@pytest.mark.parametrize(
    ("text", "version"),
    [
        (AFTER_A_RELEASE.replace("- New.\n\n", ""), "1.0.1"),
        (WRITTEN_BEFORE.replace("Unreleased\n", "Unreleased\n\n- New.\n"), "1.0.0"),
        ("# Changes\n", "1.0.0"),
    ],
    ids=["no entries", "entries beside a written section", "no heading"],
)
def test_a_changelog_that_is_not_ready_is_refused(text: str, version: str) -> None:
    with pytest.raises(ToolError):
        released_changes(text, version, DAY)


@pytest.mark.parametrize("arguments", [[], ["1.0"], ["0.0.1"], [prepare.current_version()]])
def test_only_a_newer_version_is_prepared(arguments: list[str]) -> None:
    with pytest.raises(ToolError):
        prepare.main(arguments)


def test_a_list_of_all_migrations_agrees_with_the_files(released_list: Path) -> None:
    migrations.check_released()
    done = subprocess.run(("sha256sum", "--check", "--quiet", "--strict", released_list), check=False)
    assert done.returncode == 0  # the command of `make check`


@pytest.mark.parametrize(("old", "new"), [("0001_initial", "0000_removed"), ("", "0" * 64 + "  ")])
def test_an_edited_or_removed_migration_is_refused(released_list: Path, old: str, new: str) -> None:
    lines = released_list.read_text().splitlines(keepends=True)
    edited = lines[0].replace(old, new) if old else f"{new}{lines[0].split('  ')[1]}"
    released_list.write_text("".join([edited, *lines[1:]]))
    with pytest.raises(ToolError, match=edited.split()[1]):
        migrations.check_released()


def test_the_repository_has_every_released_migration() -> None:
    migrations.check_released()


def test_an_archive_has_the_same_bytes_each_time_and_its_files_belong_to_root(tmp_path: Path) -> None:
    (tmp_path / "b").write_text("text")
    (tmp_path / "a").write_text("script")
    (tmp_path / "a").chmod(0o700)
    digests = set()
    for archive, paths in ((tmp_path / "1", ("a", "b")), (tmp_path / "2", ("b", "a"))):
        release.write_archive(archive, tmp_path, map(Path, paths), "top", datetime(2027, 1, 1, tzinfo=UTC))
        digests.add(hashlib.sha256(archive.read_bytes()).hexdigest())
    assert len(digests) == 1
    with tarfile.open(tmp_path / "1") as tar:
        facts = [(entry.name, entry.mode, entry.uid) for entry in tar]
    assert facts == [("top/a", 0o755, 0), ("top/b", 0o644, 0)]


def test_the_bill_of_materials_lists_each_package_once_with_version_licence_and_part() -> None:
    bill = sbom.bill_of_materials("1.0.0", "2027-01-01T00:00:00Z")
    references = [component["bom-ref"] for component in bill["components"]]
    assert len(references) == len(set(references))
    parts = {each["name"]: {p["value"] for p in each["properties"]} for each in bill["components"]}
    assert parts["django"] == {"server"}
    assert parts["msgspec"] == {"server", "worker"}
    assert parts["chart.js"] == {"pages"}
    assert "vite" not in parts
    assert {name for name, used in parts.items() if "worker" in used} == worker_lock.required_names()
    assert all(each["version"] and each["licenses"][0] for each in bill["components"])


def test_the_checksums_are_those_that_sha256sum_checks(tmp_path: Path) -> None:
    (tmp_path / "a.whl").write_bytes(b"wheel")
    release.write_checksums(tmp_path)
    subprocess.run(("sha256sum", "--check", "--strict", "--quiet", "SHA256SUMS"), cwd=tmp_path, check=True)


def test_the_wheels_of_a_release_have_its_version(tmp_path: Path) -> None:
    release.write_wheels(tmp_path)
    version = prepare.current_version()
    names = {path.name for path in tmp_path.iterdir()}
    assert names == {f"sweetspot_worker-{version}-py3-none-any.whl", f"sweetspot-{version}-py3-none-any.whl"}


def test_without_a_docker_engine_a_release_has_no_images_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("DOCKER_HOST", f"unix://{tmp_path}/none.sock")
    release.write_images(tmp_path / "images.tar.gz")
    assert "NOT built" in capsys.readouterr().out
    assert list(tmp_path.iterdir()) == []


def test_a_release_has_all_images_that_docker_compose_builds() -> None:
    services = yaml.safe_load((REPOSITORY / "docker-compose.yml").read_text())["services"].values()
    assert set(release.IMAGES) == {service["image"] for service in services if "build" in service}
