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
    save_enrolment,
)
from worker.link.keys import read_keys


def add_to(commands: "argparse._SubParsersAction[argparse.ArgumentParser]") -> None:
    parser = commands.add_parser("enrol", help="make this host known to a server")
    parser.add_argument("--server", required=True, metavar="URL", help="e.g. https://sweetspot.example.org")
    parser.add_argument("--token", required=True, help="from the server's page; “-” reads it from standard input")
    parser.add_argument("--name", default=platform.node(), help="this host's name (default: %(default)s)")
    parser.add_argument("--key", default="", metavar="FINGERPRINT", help="the server key that must be there")
    parser.add_argument("--ca", default="", metavar="FILE", help="certificates to trust instead of the system's")
    parser.add_argument("--replace", action="store_true", help="forget an earlier enrolment")
    parser.add_argument("--json", action="store_true", help="print the result as JSON")
    parser.set_defaults(command=run)


def run(options: argparse.Namespace, paths: Paths) -> int:
    server = check_server_url(options.server)
    prepare_state(paths.state)
    if paths.enrolment.exists() and not options.replace:
        raise ConfigError("already_enrolled", f"{paths.enrolment} is there already. Replace it with --replace.")
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
    """The file's whole path, as the service needs it. Raises ConfigError where it holds no certificates."""
    if not given:
        return ""
    path = Path(given).absolute()
    try:
        ssl.create_default_context(cafile=path)
    except OSError as error:  # an SSLError is one, too
        raise ConfigError("ca_file", f"--ca {path} holds no certificates in PEM form: {error}.") from error
    return str(path)


def _read_token(given: str) -> str:
    """A token given as an option is seen by `ps`; `-` reads it from standard input."""
    return given if given.strip("-") else sys.stdin.readline().strip()


def _ask(client: Client, token: str, name: str) -> EnrolReply:
    if not 10 <= len(token) <= 200:
        raise ConfigError("enrolment_token", "This is not an enrolment token: tokens have 10 to 200 characters.")
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
        raise ConfigError(error.code, f"The server refuses: {error}") from error
    except Unreachable as error:
        raise ConfigError(error.code, str(error)) from error


def _check_keys(reply: EnrolReply, wanted: str) -> None:
    keys = read_keys(reply.public_keys)
    if not keys:
        raise ConfigError("server_key", "The server gave no key to verify its orders with.")
    if wanted and wanted not in keys:
        raise ConfigError(
            "server_key_other",
            f"The server's key is {', '.join(keys)} and not {wanted}. "
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
    print(
        f"Next: say in {paths.policy} what may be used, check with “sweetspot-worker doctor”, then start the service."
    )
