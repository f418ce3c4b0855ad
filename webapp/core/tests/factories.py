"""Real rows for tests, as plain functions; every argument has a default that works.

Lives in the lowest app but knows all of them: tests may look upwards.
"""

import itertools
from collections.abc import Mapping
from datetime import timedelta
from typing import Any

import msgspec
from django.utils import timezone

from webapp.core.models import Role, User
from webapp.core.tokens import new_token
from webapp.hosts.models import Host, Target
from webapp.plans.destruction import destroys
from webapp.plans.document import Part, PlanDocument, write
from webapp.plans.models import Plan, PlanVersion
from webapp.runs.models import Run, Trial
from worker.contract.workload import FioWorkload, Pattern, TargetKind

_numbers = itertools.count(1)

CAPABILITIES = {
    "engines": {
        "fio": {"version": "fio-3.33", "features": ["io_uring", "libaio", "psync", "fixedbufs", "registerfiles"]}
    },
    "settings": ["scheduler", "read_ahead_kb"],
    "as_root": True,
    "isolation": "cgroup2",
}
DOCUMENT = PlanDocument(
    title="A plan",
    common={"size": "64m", "runtime": "3"},
    parts=(Part(name="random", factors={"pattern": "randread", "block_size": "4k", "iodepth": "1, 32"}),),
    repeats=2,
)


def a_user(username: str = "", role: Role = Role.OPERATOR) -> User:
    return User.objects.create_user(username or f"user{next(_numbers)}", password="a long pass phrase", role=role)


def a_host(**changes: Any) -> Host:
    """An active host that was heard just now."""
    return a_host_with_token(**changes)[0]


def a_host_with_token(**changes: Any) -> tuple[Host, str]:
    plain, token_hash = new_token()
    slug = f"host{next(_numbers)}"
    fields = {"slug": slug, "hostname": slug, "last_seen_at": timezone.now(), "capabilities": CAPABILITIES}
    return Host.objects.create(token_hash=token_hash, **(fields | changes)), plain


def a_target(host: Host | None = None, **changes: Any) -> Target:
    """A directory that is there."""
    host = host or a_host()
    slug = f"scratch{next(_numbers)}"
    path = f"/srv/{slug}"
    fields = {
        "slug": slug, "kind": "directory", "path": path, "stable_id": f"dir:{path}", "size_bytes": 2**40,
        "lock_keys": [f"{host.id}:{slug}"], "settings_allowed": ["*"], "present": True,
    }  # fmt: skip
    return Target.objects.create(host=host, **(fields | changes))


def a_drive(host: Host | None = None, **changes: Any) -> Target:
    """A block device that may be destroyed."""
    number = next(_numbers)
    fields = {
        "slug": f"nvme{number}", "kind": "block", "path": f"/dev/nvme{number}n1", "stable_id": f"eui.{number:016x}",
        "serial": f"SERIAL{number}", "lock_keys": [f"eui.{number:016x}"], "destroy": True,
    }  # fmt: skip
    return a_target(host, **(fields | changes))


def a_version(document: PlanDocument = DOCUMENT) -> PlanVersion:
    plan = Plan.objects.create(slug=f"plan{next(_numbers)}", title=document.title)
    return PlanVersion.objects.create(plan=plan, number=1, document=write(document))


def a_run(*targets: Target, trials: int = 2, pattern: Pattern = Pattern.RANDREAD, **changes: Any) -> Run:
    """A queued run with so many planned trials on each target; nothing is dispatched."""
    number = (Run.objects.order_by("-number").values_list("number", flat=True).first() or 0) + 1
    fields: Mapping[str, Any] = {
        "number": number, "version": a_version(), "seed": 7, "trial_count": trials * len(targets),
        "armed_serials": [], "armed_until": timezone.now() + timedelta(hours=1),
    }  # fmt: skip
    run = Run.objects.create(**{**fields, **changes})
    run.targets.set(targets)
    for place, (repeat, target) in enumerate(itertools.product(range(1, trials + 1), targets)):
        a_trial(run, target, index=place, repeat=repeat, pattern=pattern)
    return run


def a_trial(run: Run, target: Target, *, index: int, repeat: int = 1, pattern: Pattern = Pattern.RANDREAD) -> Trial:
    workload = FioWorkload(pattern=pattern, iodepth=32, runtime_s=3, size_bytes=2**26)
    destructive = destroys(workload, TargetKind(target.kind))
    return Trial.objects.create(
        run=run, index=index, repeat=repeat, part="random", host=target.host, target=target,
        point={"pattern": pattern.value, "block_size": 4096, "iodepth": 32}, point_key=f"key-{pattern}",
        workload=msgspec.to_builtins(workload), settings={"scheduler": "none"}, destructive=destructive,
        attempts_left=1 if destructive else 2,
    )  # fmt: skip
