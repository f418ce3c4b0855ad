"""Hosts, their targets and their inventories."""

import hashlib
import itertools
import json
from copy import deepcopy
from typing import Any

import msgspec
from django.utils import timezone

from webapp.core.tokens import new_token
from webapp.hosts.models import Host, HostInventory, InventoryContent, Target
from worker.contract.inventory import BlockDevice, Cpu, Holder, Inventory, Kernel

CAPABILITIES = {
    "engines": {
        "fio": {"version": "fio-3.33", "features": ["io_uring", "libaio", "psync", "fixedbufs", "registerfiles"]}
    },
    "settings": ["scheduler", "read_ahead_kb"],
    "as_root": True,
    "isolation": "cgroup2",
}
_numbers = itertools.count(1)


def a_host(slug: str = "", **changes: Any) -> Host:
    """An active host that was heard just now."""
    return a_host_with_token(slug, **changes)[0]


def a_host_with_token(slug: str = "", **changes: Any) -> tuple[Host, str]:
    plain, token_hash = new_token()
    slug = slug or f"host{next(_numbers)}"
    fields = {
        "hostname": f"{slug}.lab.example", "last_seen_at": timezone.now(), "worker_version": "0.1.0",
        "capabilities": deepcopy(CAPABILITIES),  # a test may change those of its host
    }  # fmt: skip
    return Host.objects.create(slug=slug, token_hash=token_hash, **(fields | changes)), plain


def a_target(host: Host | None = None, slug: str = "", **changes: Any) -> Target:
    """A directory that is there."""
    host = host or a_host()
    slug = slug or f"scratch{next(_numbers)}"
    fields = {
        "kind": "directory", "path": f"/srv/{slug}", "stable_id": f"dir:/srv/{slug}", "size_bytes": 2**40,
        "lock_keys": [f"{host.slug}/{slug}"], "settings_allowed": ["*"], "present": True,
    }  # fmt: skip
    return Target.objects.create(host=host, slug=slug, **(fields | changes))


def a_drive(host: Host | None = None, slug: str = "", **changes: Any) -> Target:
    """A block device that may be destroyed."""
    number = next(_numbers)
    fields = {
        "kind": "block", "path": f"/dev/nvme{number}n1", "stable_id": f"eui.{number:016x}",
        "serial": f"SERIAL{number}", "lock_keys": [f"eui.{number:016x}"], "destroy": True,
    }  # fmt: skip
    return a_target(host, slug or f"nvme{number}", **(fields | changes))


# ---- storage1, a host of the pages


def storage1_scratch(host: Host | None = None, slug: str = "scratch", **changes: Any) -> Target:
    """A directory on the NVMe drive of storage1."""
    fields: dict[str, Any] = {
        "model": "SAMSUNG MZQL21T9HCJR", "device": "nvme0n1", "size_bytes": 900_000_000_000, "settings_allowed": [],
    }  # fmt: skip
    return a_target(host or a_host("storage1"), slug, **(fields | changes))


def storage1_drive(host: Host, slug: str = "nvme0", **changes: Any) -> Target:
    """The NVMe drive of storage1, whose content may be destroyed."""
    fields: dict[str, Any] = {
        "path": "/dev/nvme0n1", "stable_id": "nvme-eui.0025385b", "serial": "S64GNE0R800123", "firmware": "GDC5902Q",
        "model": "SAMSUNG MZQL21T9HCJR", "device": "nvme0n1", "size_bytes": 1_920_383_410_176,
        "lock_keys": [f"{host.slug}/{slug}"],
    }  # fmt: skip
    return a_drive(host, slug, **(fields | changes))


def storage1_inventory() -> Inventory:
    return Inventory(
        hostname="storage1.lab.example",
        distribution="Debian GNU/Linux 12",
        hypervisor="",
        cpu=Cpu(model="AMD EPYC 9354P", sockets=1, cores=32, threads=64, governor="performance"),
        memory_bytes=270_582_939_648,
        kernel=Kernel(release="6.1.0-25-amd64", command_line="root=/dev/sda2 ro quiet", boot_id="b" * 36),
        block_devices=(
            BlockDevice(
                name="nvme0n1", path="/dev/nvme0n1", kind="disk", major_minor="259:0", stable_id="nvme-eui.0025385b",
                model="SAMSUNG MZQL21T9HCJR", serial="S64GNE0R800123", firmware="GDC5902Q", transport="nvme",
                size_bytes=1_920_383_410_176, scheduler="none", schedulers=("none", "mq-deadline"),
            ),
            BlockDevice(
                name="sda", path="/dev/sda", kind="disk", major_minor="8:0", stable_id="wwn-0x5000c500",
                model="INTEL SSDSC2KB48", serial="PHYF1234", size_bytes=480_103_981_056, transport="sata",
                scheduler="mq-deadline", holders=(Holder(kind="mount", detail="/ (sda2)"),),
            ),
        ),
    )  # fmt: skip


def an_inventory(host: Host, **changes: Any) -> HostInventory:
    """The inventory of storage1, taken just now."""
    facts = msgspec.to_builtins(msgspec.structs.replace(storage1_inventory(), **changes))
    digest = hashlib.sha256(json.dumps(facts).encode()).hexdigest()
    content, _ = InventoryContent.objects.get_or_create(digest=digest, defaults={"facts": facts})
    return HostInventory.objects.create(host=host, content=content, taken_at=timezone.now())
