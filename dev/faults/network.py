"""The network of the campaign: a bridge, and one network namespace for each host.

Both are inside the campaign's own network namespace.
"""

import subprocess
from collections.abc import Sequence
from pathlib import Path

from dev.console import ToolError
from dev.stack.network import await_condition

BRIDGE = "faults0"
SERVER_ADDRESS = "10.77.0.1"


def _run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


class Network:
    def __init__(self, hosts: int) -> None:
        self._holders: list[subprocess.Popen[bytes]] = []  # one process in each host's namespace keeps it alive
        _run("ip", "link", "set", "lo", "up")
        _run("ip", "link", "add", BRIDGE, "type", "bridge")
        _run("ip", "addr", "add", f"{SERVER_ADDRESS}/24", "dev", BRIDGE)
        _run("ip", "link", "set", BRIDGE, "up")
        for host in range(hosts):
            self._add_host(host)

    def _add_host(self, host: int) -> None:
        holder, link = _namespace_holder(), _link(host)
        self._holders.append(holder)
        _run("ip", "link", "add", link, "type", "veth", "peer", "name", "eth0", "netns", str(holder.pid))
        _run("ip", "link", "set", link, "master", BRIDGE, "up")
        for arguments in (
            ("link", "set", "lo", "up"),
            ("addr", "add", f"10.77.0.{host + 10}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
        ):
            _run(*self.inside(host, ("ip", *arguments)))

    def inside(self, host: int, command: Sequence[str]) -> tuple[str, ...]:
        """The command line that runs `command` in the host's network. (`ip netns exec` would hide cgroups.)"""
        return ("nsenter", f"--net=/proc/{self._holders[host].pid}/ns/net", "--", *command)

    def close(self) -> None:
        for holder in self._holders:
            holder.kill()
            holder.wait()

    def disconnect(self, host: int) -> None:
        _run("ip", "link", "set", _link(host), "down")

    def connect(self, host: int) -> None:
        _run("ip", "link", "set", _link(host), "up")


def _namespace_holder() -> "subprocess.Popen[bytes]":
    """A process in a new network namespace. It ends with the campaign's process namespace."""
    holder = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    own = Path("/proc/self/ns/net").readlink()
    if not await_condition(lambda: Path(f"/proc/{holder.pid}/ns/net").readlink() != own, limit_s=10):
        raise ToolError("The kernel did not create a network namespace.")
    return holder


def _link(host: int) -> str:
    return f"host{host + 1}"
