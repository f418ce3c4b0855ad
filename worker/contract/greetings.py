"""How a host introduces itself, and what it gets for that: its token, its keys, the version to speak."""

from typing import Annotated

from msgspec import Meta

from worker.contract.base import CONTRACT_VERSION, OLDEST_UNDERSTOOD, Id, Message, SmallCount, Text, Time
from worker.contract.inventory import Capabilities, DriveHealth, Inventory, Label, PolicyTarget
from worker.contract.signing import Endorsement


class Hello(Message, frozen=True, kw_only=True):
    """Sent at start, after an inventory order, every minute while idle, and when the policy file changes."""

    worker_version: Label
    oldest_contract: SmallCount
    newest_contract: SmallCount
    boot_id: Label
    at: Time
    inventory: Inventory
    capabilities: Capabilities
    targets: Annotated[tuple[PolicyTarget, ...], Meta(max_length=1000)]
    health: Annotated[tuple[DriveHealth, ...], Meta(max_length=2000)] = ()  # as last asked; () before that
    host_settings: Annotated[tuple[Label, ...], Meta(max_length=200)] = ()  # kernel-wide, that the policy lets change
    journal: Annotated[tuple[Id, ...], Meta(max_length=20_000)] = ()  # attempts the worker has not finished reporting
    trusted_keys: Annotated[tuple[Id, ...], Meta(max_length=64)] = ()  # ids of the server keys it trusts now
    policy_problem: Text = ""  # why the policy file allows nothing, in words
    version: int = OLDEST_UNDERSTOOD


class HelloReply(Message, frozen=True, kw_only=True):
    contract: int  # the version to speak from now on
    server_time: float
    public_keys: dict[Id, str]  # key id -> base64 of the raw key: the keys to trust from now on
    # A key that the host does not trust yet is taken only with an endorsement by one that it trusts.
    endorsements: Annotated[tuple[Endorsement, ...], Meta(max_length=64)] = ()
    message: Text = ""
    token_due: bool = False  # fetch a new host token
    version: int = OLDEST_UNDERSTOOD


class TokenRequest(Message, frozen=True, kw_only=True):
    """Fetch the host's next token, with the one it has; only after a reply said `token_due`."""

    version: int = CONTRACT_VERSION


class TokenReply(Message, frozen=True, kw_only=True):
    """The next token, and the broker's URL with the host's next password there. Its text leaves both out.

    The old ones open until this token was used once; asked again, there are others and these are dead.
    """

    host_token: Annotated[str, Meta(min_length=20, max_length=200)]
    broker_url: Text
    version: int = CONTRACT_VERSION

    def __repr__(self) -> str:
        return "TokenReply()"


class Enrol(Message, frozen=True, kw_only=True):
    """Trade a one-time token for the host's own. Its text leaves the token out."""

    token: Annotated[str, Meta(min_length=10, max_length=200)]
    hostname: Label
    worker_version: Label
    oldest_contract: SmallCount
    newest_contract: SmallCount
    version: int = OLDEST_UNDERSTOOD

    def __repr__(self) -> str:
        return f"Enrol(hostname={self.hostname!r})"


class EnrolReply(Message, frozen=True, kw_only=True):
    """The host's own token and broker user. Its text leaves both out."""

    host: Id
    host_name: Label
    host_token: Annotated[str, Meta(min_length=20, max_length=200)]
    broker_url: Text
    public_keys: dict[Id, str]
    contract: int
    version: int = OLDEST_UNDERSTOOD

    def __repr__(self) -> str:
        return f"EnrolReply(host={self.host!r}, host_name={self.host_name!r})"


class Problem(Message, frozen=True, kw_only=True):
    """Body of every answer that is not 200."""

    code: Id
    message: Text
    version: int = OLDEST_UNDERSTOOD
