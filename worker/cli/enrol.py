"""`enrol`: exchange the one-time token for this host's own token."""

import argparse
import platform
import ssl
import sys
from pathlib import Path

import msgspec

from worker import __version__
from worker.contract.base import CONTRACT_VERSION, OLDEST_UNDERSTOOD
from worker.contract.greetings import Enrol, EnrolReply
from worker.link.client import Client, Refused, Unreachable
from worker.link.enrolment import (
    ConfigError,
    Enrolment,
    Paths,
    check_broker_url,
    check_server_url,
    prepare_state,
    read_keys,
    save_enrolment,
)


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("enrol", help="register this host with a server")
    parser.add_argument("--server", required=True, metavar="URL", help="e.g. https://sweetspot.example.org")
    parser.add_argument(
        "--token", required=True, help="one-time token of the page “Add host”; “-” reads standard input"
    )
    parser.add_argument("--name", default=platform.node(), help="this host's name (default: %(default)s)")
    parser.add_argument("--key", default="", metavar="FINGERPRINT", help="required fingerprint of the server's key")
    parser.add_argument("--ca", default="", metavar="FILE", help="CA certificates to trust instead of the system's")
    parser.add_argument("--replace", action="store_true", help="replace an earlier enrolment")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace, paths: Paths) -> int:
    server = check_server_url(options.server)
    prepare_state(paths.state)
    if paths.enrolment.exists() and not options.replace:
        raise ConfigError("already_enrolled", f"{paths.enrolment} already exists. To enrol again, use --replace.")
    ca_file = _certificates(options.ca)
    reply = _ask(Client(server, ca_file=ca_file), _read_token(options.token), options.name)
    _check_keys(reply, options.key)
    check_broker_url(reply.broker_url)
    enrolment = Enrolment(
        host=reply.host,
        host_name=reply.host_name,
        server=server,
        host_token=reply.host_token,
        broker_url=reply.broker_url,
        public_keys=dict(reply.public_keys),
        contract=reply.contract,
        ca_file=ca_file,
    )
    save_enrolment(paths, enrolment)
    _tell(options, paths, enrolment)
    return 0


def _certificates(given: str) -> str:
    """The file's absolute path, which the service needs. Raises ConfigError if the file has no certificates."""
    if not given:
        return ""
    path = Path(given).absolute()
    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:  # includes SSLError
        raise ConfigError("ca_file", f"--ca {path} contains no PEM certificates: {error}.") from error
    return str(path)


def _read_token(given: str) -> str:
    """`-` reads the token from standard input, because `ps` shows options."""
    return given if given.strip("-") else sys.stdin.readline().strip()


def _ask(client: Client, token: str, name: str) -> EnrolReply:
    if not 10 <= len(token) <= 200:
        raise ConfigError("enrolment_token", "--token is not an enrolment token: it must have 10 to 200 characters.")
    message = Enrol(
        token=token,
        hostname=name,
        worker_version=__version__,
        oldest_contract=OLDEST_UNDERSTOOD,
        newest_contract=CONTRACT_VERSION,
    )
    try:
        return client.enrol(message)
    except Refused as error:
        raise ConfigError(error.code, f"The server rejects the enrolment: {error}") from error
    except Unreachable as error:
        raise ConfigError(error.code, str(error)) from error


def _check_keys(reply: EnrolReply, wanted: str) -> None:
    keys = read_keys(reply.public_keys)
    if not keys:
        raise ConfigError("server_key", "The server sent no key for verifying its orders.")
    if wanted and wanted not in keys:
        raise ConfigError(
            "server_key_other",
            f"The server's key is {', '.join(keys)}, not {wanted}. "
            "The connection may be intercepted; nothing was saved.",
        )


def _tell(options: argparse.Namespace, paths: Paths, enrolment: Enrolment) -> None:
    facts = {
        "host": enrolment.host,
        "name": enrolment.host_name,
        "server": enrolment.server,
        "broker": enrolment.broker_address,
        "keys": sorted(enrolment.public_keys),
        "state": str(paths.state),
        "policy": str(paths.policy),
    }
    if options.json:
        print(msgspec.json.encode(facts).decode())
        return
    print(f"This host is {enrolment.host_name} ({enrolment.host}) at {enrolment.server}.")
    print(f"Trusted server key: {', '.join(sorted(enrolment.public_keys))}")
    print(f"Next: list targets in {paths.policy}, check with “sweetspot-worker doctor”, then start the service.")
