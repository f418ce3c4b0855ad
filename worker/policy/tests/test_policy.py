import os
from pathlib import Path

import pytest

from worker import policy
from worker.kernel.sysfs import shortened
from worker.link.targets import report_targets
from worker.policy import PolicyError
from worker.settings import SETTING_NAMES

EXAMPLE = Path(__file__).parents[2] / "deploy/policy.example.toml"
GOOD = '[[target]]\nid = "a"\nkind = "directory"\npath = "/srv/a"\n'
SDA = GOOD.replace("directory", "block").replace("/srv/a", "/dev/sda") + 'stable_id = "wwn-0x1"\nserial = "S"\n'


def refusal(tmp_path: Path, text: str) -> PolicyError:
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(PolicyError) as caught:
        policy.load(path, SETTING_NAMES)
    return caught.value


DRIVE = '[[target]]\nid = "{0}"\nkind = "block"\npath = "/dev/{0}"\nstable_id = "wwn-{0}"\ndestroy = {1}\n'
POOL = '[[pool]]\nid = "{0}"\ndrives = [{1}]\n'


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (DRIVE.format("a", "false") + POOL.format("p", '"a"'), "a must be a block device with destroy = true"),
        (DRIVE.format("a", "true") + POOL.format("p", '"b"'), "'b', which is not a target in this file"),
        (DRIVE.format("a", "true") + POOL.format("p", '"a", "a"'), "a drive is listed twice"),
        (DRIVE.format("a", "true") + POOL.format("a", '"a"'), "2 targets or pools have the id 'a'"),
        (DRIVE.format("a", "true") + POOL.format("p", ""), "length >= 1"),
        (DRIVE.format("a", "true").replace("block", "pool"), "write a [[pool]] with id and drives"),
    ],
)
def test_it_refuses_a_pool_that_is_none(tmp_path: Path, text: str, words: str) -> None:
    assert words in str(refusal(tmp_path, text))


def test_a_pool_with_its_drives_in_another_order_is_another_target(tmp_path: Path) -> None:
    path, found = tmp_path / "policy.toml", []
    for drives in ('"a", "b"', '"b", "a"'):
        path.write_text(DRIVE.format("a", "true") + DRIVE.format("b", "true") + POOL.format("p", drives))
        found.append(policy.load(path, SETTING_NAMES).identity("p"))
    assert found[0] != found[1]
    assert [drive.id for drive in policy.load(path, SETTING_NAMES).drives("p")] == ["b", "a"]


def test_it_allows_nothing_in_the_example_until_a_target_is_uncommented(tmp_path: Path) -> None:
    text = EXAMPLE.read_text()
    path = tmp_path / "policy.toml"
    path.write_text(text)
    assert policy.load(path, SETTING_NAMES).targets == ()
    path.write_text(
        "\n".join(row[2:] if row[:2] == "# " and ("=" in row or row.startswith("# [")) else row for row in _rows(text))
    )
    allowed = policy.load(path, SETTING_NAMES)
    assert [entry.id for entry in allowed.targets] == ["scratch", "nvme1", "data-read", "image", "slot3"]
    assert [drive.id for drive in allowed.drives("bench")] == ["nvme1"]
    assert "vm.dirty_ratio" in allowed.host_settings


def _rows(text: str) -> list[str]:
    """The example's lines, without the prose that holds an equals sign."""
    return [row for row in text.splitlines() if not row.startswith("# ") or row.split()[1] in KEYS]


KEYS = {
    "[host]",
    "[[target]]",
    "[[pool]]",
    "drives",
    "id",
    "kind",
    "path",
    "stable_id",
    "serial",
    "destroy",
    "settings",
    "max_bytes",
    "max_write_bytes",
    "read_mounted",
    "destroy_signatures",
    "purge",
    "experimental",
}


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (GOOD + "sizee = 1\n", "line 5"),
        (GOOD + "sizee = 1\n", "valid: id, kind, path, stable_id"),
        (GOOD.replace('"directory"', '"dir"'), "valid: block, directory, file, slot"),
        (SDA + 'destroy = true\npurge = ["shred"]\n', "valid: discard, nvme_format"),
        (GOOD + '[[pool]]\nid = "b"\ndrive = ["a"]\n', "valid: id, drives"),
        (GOOD + GOOD.replace('"directory"', '"dir"'), "line 7"),
        (GOOD + "destroy = 1\n", "line 5"),
        ("targets = 1\n", "line 1"),
        ("[[target]\n", "line 1"),
        (GOOD + GOOD, "ids must differ"),
        (GOOD.replace("/srv/a", "/srv/../a"), "line 4"),
        (GOOD.replace("/srv/a", "srv"), "line 4"),
        (GOOD + "destroy = true\n", "destroy is only for"),
        (GOOD + "max_write_bytes = 0\n", "max_write_bytes must be"),
        (GOOD + 'settings = ["shedule"]\n', "'shedule'"),
        (GOOD + 'settings = ["vm.dirty_ratio"]\n', "not a setting of a target"),
        ('[host]\nsettings = ["scheduler"]\n', "not a setting of the host"),
        ('[host]\nsettings = ["*"]\n', "not a setting of the host"),
        ('[host]\nsetting = ["irqbalance"]\n', "line 2"),
        (GOOD + 'stable_id = "dir:/srv/b"\n', "dir:/srv/a"),
        (GOOD + 'purge = ["discard"]\n', "only for block devices"),
        (GOOD + "experimental = true\n", "only for block devices and slots"),
        (SDA + 'destroy = true\ndestroy_members = ["lvm2"]\n', "destroy_signatures = [...]"),
        (SDA + 'destroy = true\ndestroy_members = ["lvm2"]\n', '"LVM2_member" instead of "lvm2"'),
        (SDA + 'destroy = true\ndestroy_signatures = ["md raid"]\n', 'write "linux_raid_member"'),
        (SDA + 'destroy = true\ndestroy_signatures = ["zfs"]\n', 'write "zfs_member"'),
        (SDA + 'destroy = true\ndestroy_signatures = ["*"]\n', "names of wipefs"),
        (SDA + 'destroy_signatures = ["ext4"]\n', "need destroy = true"),
        (SDA + 'destroy = true\npurge = ["shred"]\n', "purge"),
        (GOOD.replace("directory", "block").replace("/srv/a", "/dev/sda"), "needs a stable_id"),
        (
            GOOD.replace("directory", "block").replace("/srv/a", "/dev/vda")
            + 'stable_id = "name:vda"\ndestroy = true\n',
            "only a kernel name",
        ),
    ],
)
def test_it_refuses_what_it_does_not_understand_and_says_where(tmp_path: Path, text: str, words: str) -> None:
    refused = refusal(tmp_path, text)
    assert refused.code == "policy_invalid"
    assert words in str(refused)
    assert str(tmp_path / "policy.toml") in str(refused)


UUID = "3f0a6c1e-5b4c-4c0e-9a54-0f3f1b6f6c11"
PART = f"wwn-0x1-part1:{UUID}@2048+65536"


@pytest.mark.parametrize("identity", [
    "wwn-0x1-part1", "wwn-0x1-part:", f"wwn-0x1-part1:{UUID}", f"wwn-0x1-part1:{UUID}@2048",
    f"wwn-0x1-part1:{UUID}@2048+", PART.upper(), PART.replace("-part1", "-part"), PART.replace("-part1", "part1"),
    PART.replace("-part1:", "-part01:"),
    f"{PART} ", f"{PART}s", "name:sda1@2048+1",
])  # fmt: skip
def test_a_partition_without_a_whole_id_is_refused_with_its_line(tmp_path: Path, identity: str) -> None:
    """Such an entry names no partition, so it would not protect the one that it was written for."""
    refused = refusal(tmp_path, GOOD + "\n" + SDA.replace("wwn-0x1", identity))
    assert refused.code == "policy_invalid"
    assert "line 10, target 'a'" in str(refused)


@pytest.mark.parametrize("path", [
    "/dev/sda1", "/dev/nvme0n1p2", "/dev/loop3p1", "/dev/disk/by-id/wwn-0x1-part1", "/dev/disk/by-partuuid/abc",
])  # fmt: skip
def test_a_partition_with_the_id_of_its_disk_is_refused(tmp_path: Path, path: str) -> None:
    assert refusal(tmp_path, SDA.replace("/dev/sda", path)).code == "policy_invalid"
    (tmp_path / "policy.toml").write_text(SDA.replace("/dev/sda", path).replace("wwn-0x1", PART))
    assert policy.load(tmp_path / "policy.toml", SETTING_NAMES).targets[0].identity == PART


@pytest.mark.parametrize("identity", [
    PART, "name:sda1:@2048+1", "wwn-0x1-part15:1a2b3c4d-0f@63+8", shortened(f"{'w' * 90}-part1:{UUID}@2048+1"),
    "dm-uuid-part1-mpath-35000c50000002000", "loop:/srv/a.img@4096", "wwn-0x1", "sata-my-partner_S1",
])  # fmt: skip
def test_ids_of_partitions_and_of_other_devices_are_read(tmp_path: Path, identity: str) -> None:
    (tmp_path / "policy.toml").write_text(SDA.replace("wwn-0x1", identity))
    assert policy.load(tmp_path / "policy.toml", SETTING_NAMES).targets[0].identity == identity


def test_it_refuses_a_file_that_others_can_write(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(GOOD)
    path.chmod(0o664)
    with pytest.raises(PolicyError, match="chmod go-w"):
        policy.load(path, SETTING_NAMES)
    path.chmod(0o644)
    assert policy.load(path, SETTING_NAMES).entry("a") is not None
    tmp_path.chmod(0o777)
    with pytest.raises(PolicyError, match="directory"):
        policy.load(path, SETTING_NAMES)


@pytest.mark.root
@pytest.mark.skipif(os.geteuid() != 0, reason="needs root: chown")
def test_it_refuses_a_file_of_another_user(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(GOOD)
    os.chown(path, 12345, 12345)
    with pytest.raises(PolicyError, match="belongs to user 12345"):
        policy.load(path, SETTING_NAMES)


def test_it_says_that_there_is_no_policy(tmp_path: Path) -> None:
    with pytest.raises(PolicyError, match="nothing may be used") as caught:
        policy.load(tmp_path / "none.toml", SETTING_NAMES)
    assert caught.value.code == "policy_missing"


def test_it_reports_what_is_there_and_what_is_not(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir(mode=0o755)
    path = tmp_path / "policy.toml"
    path.write_text(GOOD.replace("/srv/a", str(tmp_path / "a")) + GOOD.replace('"a"', '"b"') + 'settings = ["*"]\n')
    there, missing = report_targets(policy.load(path, SETTING_NAMES))
    assert (there.present, there.problem, there.stable_id) == (True, "", f"dir:{tmp_path}/a"[:100])
    assert there.size_bytes > 0
    assert (missing.present, "scheduler" in missing.settings) == (False, True)
    assert "/srv/a" in missing.problem


def test_a_star_covers_neither_what_can_cost_data_nor_what_touches_others(tmp_path: Path) -> None:
    path = tmp_path / "policy.toml"
    path.write_text(GOOD + 'settings = ["*", "irq_affinity"]\n')
    (entry,) = policy.load(path, SETTING_NAMES).targets
    assert {"scheduler", "queue_depth", "irq_affinity"} <= set(entry.settings)
    assert not {"write_cache", "drive_write_cache", "nvme.write_cache", "vm.dirty_ratio"} & set(entry.settings)
    assert "write_cache" not in entry.settings


def test_it_refuses_a_policy_below_a_directory_in_which_others_can_rename(tmp_path: Path) -> None:
    """Whoever can rename a directory above the policy can put another one in its place."""
    path = tmp_path / "above" / "etc" / "policy.toml"
    path.parent.mkdir(parents=True)
    path.write_text(GOOD)
    path.chmod(0o644)
    (tmp_path / "above").chmod(0o777)
    with pytest.raises(PolicyError, match="chmod go-w"):
        policy.load(path, SETTING_NAMES)
    (tmp_path / "above").chmod(0o755)
    assert policy.load(path, SETTING_NAMES).entry("a") is not None
