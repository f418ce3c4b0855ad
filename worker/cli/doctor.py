"""`doctor`: check everything that this worker needs, and explain how to fix problems.

As root on a host with the service, it checks in a sandbox like that of the service.
"""

import argparse
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Collection, Iterator, Sequence
from pathlib import Path

import msgspec

from worker import engines, inventory, policy
from worker.cli import formatting, sandbox
from worker.contract.inventory import QUARANTINED, BlockDevice, Inventory, PolicyTarget
from worker.contract.orders import queue_name
from worker.engines.base import Check, State
from worker.journal import Journal, JournalError
from worker.kernel.sysfs import is_stable
from worker.layouts.building import removal_command
from worker.link.client import Client, Refused, Unreachable
from worker.link.enrolment import ConfigError, Enrolment, EnrolmentStore, Paths, load_enrolment, prepare_state
from worker.link.registration import Registration, known_capabilities, offered
from worker.link.spool import RESERVE_BYTES, Spool, SpoolFull
from worker.link.targets import layouts_here, read_policy, report_targets_here
from worker.process.scope import isolation
from worker.recipes.layouts.problems import PACKAGES, with_package
from worker.settings import SETTING_NAMES

# Ready-made `[[target]]` tables for drives that the policy does not list.

BY_ID = Path("/dev/disk/by-id")
DISK = "disk"


def unlisted_drives(host: Inventory, listed: Collection[str]) -> list[BlockDevice]:
    """Whole drives whose stable id is not among those of the policy."""
    return [d for d in host.block_devices if d.kind == DISK and d.stable_id not in listed and not d.read_only]


def block(drive: BlockDevice, host: Inventory) -> str:
    """The table of one drive. It allows only reading, and only while nothing on the drive is in use."""
    lines = [f"# {_words(drive)}", *_uses(drive, host), "[[target]]", f"id = {json.dumps(drive.name)}"]
    lines += ['kind = "block"', f"path = {json.dumps(_path(drive))}", f"stable_id = {json.dumps(drive.stable_id)}"]
    lines += [f"serial = {json.dumps(drive.serial)}"] if drive.serial else []
    if is_stable(drive.stable_id):
        lines.append("# destroy = true    # allows trials that write: they destroy the data on the drive")
        if types := _signatures(drive, host):
            lines.append(f"# destroy_signatures = {json.dumps(types)}    # what is on the drive now")
    return "\n".join(lines)


def _words(drive: BlockDevice) -> str:
    words = f"{drive.model or 'drive without a model name'}, {formatting.size(drive.size_bytes)}"
    words += f", {drive.signature}" if drive.signature else ""
    return "".join(character if character.isprintable() else "?" for character in words)


def _signatures(drive: BlockDevice, host: Inventory) -> list[str]:
    """Of the drive and its partitions."""
    devices = (device for device in host.block_devices if device.name == drive.name or drive.name in device.parents)
    return list(dict.fromkeys(name for device in devices for name in device.signature.split(", ") if name))


def _uses(drive: BlockDevice, host: Inventory) -> Iterator[str]:
    """Comments on what uses the drive or a partition of it."""
    for device in host.block_devices:
        if device.name == drive.name or drive.name in device.parents:
            for holder in device.holders:
                yield f"# in use: {device.name}: {holder.kind} {holder.detail}".replace("\n", " ")


def _path(drive: BlockDevice) -> str:
    """The link under /dev/disk/by-id, which stays the same when the drive gets another kernel name."""
    links = sorted(link for link in BY_ID.glob("*") if link.resolve().name == drive.name) if BY_ID.is_dir() else []
    stable = [link for link in links if link.name == drive.stable_id]
    return str((stable or links or [Path(drive.path)])[0])


# Run `doctor` with the permissions and limits of the service: in a transient unit with the unit's properties.

INSIDE = "SWEETSPOT_WORKER_INSIDE_SANDBOX"
LIMIT_S = 300
# Properties that say how the service starts, restarts and stops; all others limit what it may do.
_OTHER = ("Exec", "Restart", "Kill", "Timeout", "Type")


def is_outside() -> bool:
    """Whether the service has a sandbox here and this process is not in one like it."""
    return os.geteuid() == 0 and sandbox.is_service() and INSIDE not in os.environ


def run_inside(arguments: Sequence[str]) -> tuple[int, str, str]:
    """Status, output and problem of this program with these arguments. A problem: it could not be run so."""
    try:
        unit = subprocess.run(
            ["systemctl", "cat", sandbox.NAME], check=True, capture_output=True, text=True, timeout=LIMIT_S
        ).stdout
        command = ["systemd-run", "--quiet", "--wait", "--pipe", "--collect", f"--setenv={INSIDE}=1"]
        command += [f"--property={line}" for line in properties(unit)]
        done = subprocess.run(
            [*command, sys.argv[0], *arguments], capture_output=True, text=True, timeout=LIMIT_S, check=False
        )
    except (OSError, subprocess.SubprocessError) as error:
        return 1, "", str(error)
    return done.returncode, done.stdout, "" if done.stdout else done.stderr.strip() or f"status {done.returncode}"


def properties(unit: str) -> list[str]:
    """`Name=value` of the section [Service] in the output of `systemctl cat`, drop-ins included, in their order."""
    pairs, section = [], ""
    for line in unit.splitlines():
        if line.startswith("["):
            section = line
        elif section == "[Service]" and "=" in line and not line.startswith(("#", ";", *_OTHER)):
            pairs.append(line)
    return pairs


SKEW_LIMIT_S = 5.0
BROKER_LIMIT_S = 3.0


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("doctor", help="check everything that this worker needs")
    parser.add_argument("--json", action="store_true")
    words = "print a [[target]] for each drive that the policy does not list, and check nothing"
    parser.add_argument("--targets", action="store_true", help=words)
    parser.set_defaults(command=run)


def run(options: argparse.Namespace, paths: Paths) -> int:
    if options.targets:
        print("\n\n".join(_blocks(paths)) or "The policy lists every drive of this host.")
        return 0
    problem = ""
    if is_outside():
        given = ["--state", str(paths.state), "--policy", str(paths.policy), "doctor"]
        status, output, problem = run_inside([*given, *(["--json"] if options.json else [])])
        if not problem:
            print(output, end="")
            return status
    checks = [*_sandbox(paths, problem), *examine(paths)]
    if options.json:
        print(msgspec.json.encode(checks).decode())
    else:
        print("\n".join(_line(check) for check in checks))
    return 1 if any(check.state is State.BROKEN for check in checks) else 0


def _line(check: Check) -> str:
    mark = {State.OK: "  ok   ", State.NOTE: "  note ", State.BROKEN: "BROKEN "}[check.state]
    advice = f"\n{'':23}→ {check.advice}" if check.advice else ""
    return f"{mark} {check.name:14} {check.found}{advice}"


def _blocks(paths: Paths) -> Iterator[str]:
    host, (allowed, problem) = inventory.take(), read_policy(paths.policy)
    if problem:
        print(problem, file=sys.stderr)
    listed = {entry.identity for entry in allowed.targets} if allowed else set()
    for drive in unlisted_drives(host, listed):
        yield block(drive, host)


def _sandbox(paths: Paths, problem: str) -> Iterator[Check]:
    """Where these checks run, and whether the service may write to the policy's directories."""
    if problem:
        words = f"the checks run outside the service's sandbox, because systemd-run failed: {problem}"
        yield Check("sandbox", State.NOTE, words)
    elif INSIDE in os.environ:
        yield Check("sandbox", State.OK, "the checks run in a sandbox like that of the service")
    if not sandbox.is_service():
        return
    try:
        wanted = sandbox.drop_in_text(policy.load(paths.policy, SETTING_NAMES))
    except policy.PolicyError:
        return  # reported below
    if wanted != sandbox.drop_in_now():
        words = f"{sandbox.DROP_IN} does not have the directories of the policy"
        yield Check("sandbox", State.BROKEN, words, "Run: sweetspot-worker sandbox (it restarts the service)")


def examine(paths: Paths) -> Iterator[Check]:
    """Run every check; one that fails does not stop the others."""
    try:
        prepare_state(paths.state)
    except ConfigError as error:
        yield Check("state", State.BROKEN, str(error))
        return
    known_capabilities(paths.capabilities, refresh=True)  # for the registration below
    for engine in engines.ENGINES.values():
        yield from engine.check()
    yield _privileges()
    yield _isolation()
    yield from _policy(paths)
    yield from _journal(paths)
    try:
        spool = Spool(paths.spool)
    except SpoolFull as error:
        yield Check("disk", State.BROKEN, str(error), f"Free {formatting.size(RESERVE_BYTES)}.")
        return
    yield from _spool(paths, spool)
    try:
        enrolment = load_enrolment(paths)
    except ConfigError as error:
        state = State.NOTE if error.code == "not_enrolled" else State.BROKEN
        yield Check("enrolment", state, str(error))
        return
    yield Check("enrolment", State.OK, f"{enrolment.host_name} ({enrolment.host}) at {enrolment.server}")
    yield from _server(paths, enrolment, spool)
    yield _broker(enrolment)


def _privileges() -> Check:
    if os.geteuid() == 0:
        return Check("privileges", State.OK, "root")
    words = "not root: only directories and files, no settings, no dropping of caches"
    return Check("privileges", State.NOTE, words, "Run the service as root to measure block devices.")


def _isolation() -> Check:
    kind = isolation()
    if kind.startswith("cgroup"):
        return Check("isolation", State.OK, f"child programs run in a {kind}")
    return Check("isolation", State.NOTE, f"child programs run in a {kind}", "Cgroups are more reliable.")


def _layouts() -> Check:
    """For a policy with pools."""
    parts = offered()
    can = f"can be built on pools: {', '.join(parts) or 'none'}"
    lacking = [with_package(part) for part in PACKAGES if part not in parts]
    if not lacking or os.geteuid() != 0:
        return Check("layouts", State.OK if parts else State.NOTE, can)
    advice = "Install the packages whose layouts you want to measure; the kernel must support them too."
    return Check("layouts", State.NOTE, f"{can}; not: {', '.join(lacking)}", advice)


def _policy(paths: Paths) -> Iterator[Check]:
    try:
        rules = policy.load(paths.policy, SETTING_NAMES)
        targets = report_targets_here(rules, paths)
    except policy.PolicyError as error:
        advice = "Trials need a policy. See the example next to the service file."
        yield Check("policy", State.BROKEN, str(error), advice)
        return
    if not targets:
        advice = "Add a [[target]]; “sweetspot-worker doctor --targets” prints one for each drive."
        yield Check("policy", State.NOTE, f"{paths.policy} lists no target.", advice)
    if rules.pools:
        yield _layouts()
    built = layouts_here(paths)
    for target in targets:
        yield _target(target)
        if target.stable_id in built:
            layout = built[target.stable_id]
            words = f"{target.id}: layout {layout.key} of this worker ({layout.line}) is built on it"
            yield Check("layout", State.NOTE, words, f"To take it down: {removal_command(layout)}")
        for warning in target.warnings:
            yield Check("target", State.NOTE, f"{target.id}: {warning}")


def _target(target: PolicyTarget) -> Check:
    if target.problem.startswith(QUARANTINED):
        return Check("quarantine", State.BROKEN, f"{target.id}: {target.problem}")
    if not target.present:
        return Check(
            "target", State.BROKEN, f"{target.id}: {target.problem}", "Correct the policy, or connect the device."
        )
    may = "may be overwritten" if target.destroy else "may not be overwritten"
    if target.destroy_signatures:
        may += f", also if it contains {', '.join(target.destroy_signatures)}"
    words = f"{target.id}: {target.path}, {formatting.size(target.size_bytes)}, {may}"
    return Check("target", State.OK, f"{words}; settings: {', '.join(target.settings) or 'none'}")


def _journal(paths: Paths) -> Iterator[Check]:
    try:
        journal = Journal(paths.journal)
    except JournalError as error:
        yield Check("journal", State.BROKEN, str(error))
        return
    waiting = len(journal.open_attempts())
    yield Check("journal", State.OK, f"{waiting} unfinished orders")
    if count := journal.unreadable():
        words = f"{count} changed settings or layouts in {paths.journal} cannot be read, so they stay"
        yield Check("journal", State.BROKEN, words, "Read the tables baselines and layouts; restore them by hand.")
    for entry in journal.all_set_aside():
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(entry.at))
        words = f"the order of attempt {entry.attempt} could not be read and was set aside {when}"
        advice = f"Its text is in row {entry.number} of the table attempts in {paths.journal}, for 30 days."
        yield Check("journal", State.NOTE, words, advice)
    journal.close()


def _spool(paths: Paths, spool: Spool) -> Iterator[Check]:
    free = spool.free_bytes()
    words = f"{formatting.size(free)} free in {paths.state}"
    if free < RESERVE_BYTES:
        yield Check(
            "disk", State.BROKEN, words, f"Trials fail below {formatting.size(RESERVE_BYTES)}. Free some space."
        )
    else:
        yield Check("disk", State.OK, words)
    batches, size = spool.backlog()
    yield Check("backlog", State.OK, f"{batches} batches ({formatting.size(size)}) not yet confirmed by the server")
    for lot in spool.set_aside():
        when = time.strftime("%Y-%m-%d %H:%M", time.localtime(lot.at))
        words = f"attempt {lot.attempt}: {lot.batches} batches refused {when} ({lot.code}): {lot.message}"
        yield Check("set aside", State.NOTE, words, "Kept for 30 days in spool.db.")


def _server(paths: Paths, enrolment: Enrolment, spool: Spool) -> Iterator[Check]:
    """Register with the server, which checks address, certificate, token and contract version in one exchange."""
    client = Client(enrolment.server, enrolment.host_token, ca_file=enrolment.ca_file)
    registration = Registration(
        paths,
        EnrolmentStore(paths, enrolment),
        client,
        unfinished=lambda: _unfinished(paths, spool),
        built_on=lambda: layouts_here(paths),
    )
    try:
        registration.register()
    except Refused as error:
        advice = "Enrol this host again." if error.about_token else "Upgrade the older of the two."
        yield Check("server", State.BROKEN, f"{enrolment.server} rejects this host: {error}", advice)
        return
    except Unreachable as error:
        yield Check("server", State.BROKEN, str(error), "Check the address, the firewall, and the server.")
        return
    yield Check("server", State.OK, f"{enrolment.server} accepts this host")
    skew = registration.clock_ahead_s
    words = f"the server's clock is {abs(skew):.1f} s {'ahead' if skew >= 0 else 'behind'}"
    bad = abs(skew) > SKEW_LIMIT_S
    yield Check("clock", State.NOTE if bad else State.OK, words, "Set up NTP on both machines." if bad else "")


def _unfinished(paths: Paths, spool: Spool) -> tuple[str, ...]:
    """Attempts whose end the server has not confirmed: those that are not listed are lost for it."""
    journal = Journal(paths.journal)
    try:
        under_way = [entry.attempt for entry in journal.open_attempts()]
    finally:
        journal.close()
    return tuple(dict.fromkeys([*under_way, *spool.unconfirmed()]))


def _broker(enrolment: Enrolment) -> Check:
    from redis import Redis, RedisError  # a dependency of celery[redis]

    limits = {"socket_connect_timeout": BROKER_LIMIT_S, "socket_timeout": BROKER_LIMIT_S}
    client = Redis.from_url(enrolment.broker_url, **limits, **enrolment.broker_tls)
    ask: Callable[[str], object] = client.llen
    try:
        waiting = ask(queue_name(enrolment.host))
    except RedisError as error:
        advice = "Check address and firewall. If the password is wrong, enrol again."
        return Check("broker", State.BROKEN, f"{enrolment.broker_address}: {error}", advice)
    finally:
        client.close()
    words = f"{enrolment.broker_address}, {waiting} orders in this host's queue"
    return Check("broker", State.OK, words)
