"""A bridge, and a network namespace for each host: all inside the campaign's own network namespace.

Without root there are no namespaces: hosts then share loopback, and links cannot be taken down.
"""

import os
import subprocess
from collections.abc import Sequence
from pathlib import Path

from dev.console import ToolError
from dev.stack.network import await_condition

BRIDGE = "lab0"
SERVER_ADDRESS = "10.77.0.1"


def run(*command: str) -> None:
    subprocess.run(command, check=True, capture_output=True)


class Network:
    def __init__(self, hosts: int) -> None:
        self.real = os.getuid() == 0
        self._keepers: list[subprocess.Popen[bytes]] = []  # a process that sits in each host's namespace
        if self.real:
            run("ip", "link", "set", "lo", "up")
            run("ip", "link", "add", BRIDGE, "type", "bridge")
            run("ip", "addr", "add", f"{SERVER_ADDRESS}/24", "dev", BRIDGE)
            run("ip", "link", "set", BRIDGE, "up")
            for host in range(hosts):
                self._plug_in(host)

    @property
    def server_address(self) -> str:
        return SERVER_ADDRESS if self.real else "127.0.0.1"

    def _plug_in(self, host: int) -> None:
        keeper, cable = _keeper(), _cable(host)
        self._keepers.append(keeper)
        run("ip", "link", "add", cable, "type", "veth", "peer", "name", "eth0", "netns", str(keeper.pid))
        run("ip", "link", "set", cable, "master", BRIDGE, "up")
        for words in (
            ("link", "set", "lo", "up"),
            ("addr", "add", f"10.77.0.{host + 10}/24", "dev", "eth0"),
            ("link", "set", "eth0", "up"),
        ):
            run(*self.inside(host, ("ip", *words)))

    def inside(self, host: int, command: Sequence[str]) -> tuple[str, ...]:
        """The command, run in the host's network. (`ip netns` would leave names behind and hide cgroups.)"""
        if not self.real:
            return tuple(command)
        return ("nsenter", f"--net=/proc/{self._keepers[host].pid}/ns/net", "--", *command)

    def unplug(self, host: int) -> None:
        run("ip", "link", "set", _cable(host), "down")

    def plug(self, host: int) -> None:
        run("ip", "link", "set", _cable(host), "up")


def _keeper() -> "subprocess.Popen[bytes]":
    """A process in a new network namespace; it ends with the campaign's process namespace."""
    keeper = subprocess.Popen(["unshare", "--net", "sleep", "infinity"])
    ours = Path("/proc/self/ns/net").readlink()
    if not await_condition(lambda: Path(f"/proc/{keeper.pid}/ns/net").readlink() != ours, limit_s=10):
        raise ToolError("No network namespace could be made.")
    return keeper


def _cable(host: int) -> str:
    return f"cable{host + 1}"
