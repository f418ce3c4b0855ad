"""`hosts` and `enrol`, and the names of targets."""

import argparse
from collections.abc import Sequence
from urllib.parse import quote

from . import output
from .answers import Host, Target, read
from .errors import ExitCode, UsageError
from .server import Server


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    hosts = commands.add_parser("hosts", help="list hosts, or the targets of a host")
    hosts.add_argument("host", nargs="?", metavar="HOST")
    hosts.add_argument("--json", action="store_true")
    hosts.set_defaults(command=run_hosts)
    enrol = commands.add_parser("enrol", help="create the commands that install the worker on new hosts (for admins)")
    enrol.add_argument("names", nargs="+", metavar="NAME", help="name of a new host")
    enrol.add_argument("--json", action="store_true")
    enrol.set_defaults(command=run_enrol)


def run_hosts(options: argparse.Namespace, server: Server) -> ExitCode:
    if options.host:
        return _one_host(options, server)
    hosts = list(server.items("hosts"))
    if options.json:
        output.print_json(hosts)
    else:
        print(output.table(("host", "state", "last seen", "worker"), [_host_row(read(Host, host)) for host in hosts]))
    return ExitCode.OK


def _host_row(host: Host) -> tuple[str, ...]:
    return host.slug, host.state, output.moment(host.last_seen_at), host.worker_version


def _one_host(options: argparse.Namespace, server: Server) -> ExitCode:
    host = server.get(f"hosts/{quote(options.host, safe='')}")
    if options.json:
        output.print_json(host)
    else:
        rows = [_target_row(read(Target, target)) for target in host["targets"]]
        print(output.table(("target", "kind", "size", "model", "serial to arm", "state"), rows))
    return ExitCode.OK


def _target_row(target: Target) -> tuple[str, ...]:
    state = "ready" if target.present else target.problem or "missing"
    serial = target.arming_serial or "those of its drives" if target.destroy else "–"
    return target.name, target.kind, output.size(target.size_bytes), target.model or "–", serial, state


def target_names(server: Server, host: str, targets: Sequence[str]) -> list[str]:
    """host/target for each target; without targets, the only one of the host. Raises UsageError."""
    if targets:
        return [_target_name(host, name) for name in targets]
    if not host:
        raise UsageError("Choose targets: --host storage1 --target nvme0n1, or --target storage1/nvme0n1.")
    listed = [read(Target, each) for each in server.get(f"hosts/{quote(host, safe='')}")["targets"]]
    ready = [target.name for target in listed if target.present]
    if len(ready) == 1:
        return ready
    known = f"Choose with --target: {', '.join(ready)}." if ready else f"See `sweetspot hosts {host}`."
    raise UsageError(f"{host} has {len(ready)} ready targets. {known}")


def _target_name(host: str, name: str) -> str:
    if "/" in name:
        return name
    if not host:
        raise UsageError(f"On which host is {name}? Add --host, or write host/{name}.")
    return f"{host}/{name}"


def run_enrol(options: argparse.Namespace, server: Server) -> ExitCode:
    """A line for each host as soon as it is made, so that none is lost if a later one is refused."""
    for name in options.names:
        enrolment = server.post("enrolments", {"slug": name})
        if options.json:
            output.print_json({"host": name, **enrolment})
        else:
            print(f"{name}\t{enrolment['line']}", flush=True)
    return ExitCode.OK
