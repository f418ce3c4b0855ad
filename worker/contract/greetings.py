"""Registration of a host, and the reply: its token, the server's keys, the contract version."""

from typing import Annotated

from msgspec import Meta

from worker.contract.base import (
    CONTRACT_VERSION,
    OLDEST_UNDERSTOOD,
    EarlierSessions,
    Id,
    Message,
    Session,
    SmallCount,
    Text,
    Time,
)
from worker.contract.inventory import Capabilities, DriveHealth, Inventory, Label, PolicyTarget
from worker.contract.signing import Endorsement

SESSION_OTHER = "session_other"  # code of the refusal of a second worker with the same identity


class Hello(Message, frozen=True, kw_only=True):
    """Sent at start, after an inventory order, every minute while idle, and after a change of the policy file."""

    worker_version: Label
    oldest_contract: SmallCount
    newest_contract: SmallCount
    boot_id: Label
    at: Time
    inventory: Inventory
    capabilities: Capabilities
    targets: Annotated[tuple[PolicyTarget, ...], Meta(max_length=1000)]
    health: Annotated[tuple[DriveHealth, ...], Meta(max_length=2000)] = ()  # as last read; () before the first reading
    host_settings: Annotated[tuple[Label, ...], Meta(max_length=200)] = ()  # kernel-wide, allowed by the policy
    journal: Annotated[tuple[Id, ...], Meta(max_length=20_000)] = ()  # attempts with unconfirmed reports
    trusted_keys: Annotated[tuple[Id, ...], Meta(max_length=64)] = ()  # ids of the server keys that it trusts
    policy_problem: Text = ""  # why the policy file allows nothing, as a sentence
    # The disk of the state directory is full: no trial starts, and `journal` may be incomplete.
    state_disk_full: bool = False
    session: Session = ""
    earlier_sessions: EarlierSessions = ()  # that the server may hold
    version: int = OLDEST_UNDERSTOOD


class HelloReply(Message, frozen=True, kw_only=True):
    contract: int  # the contract version to use from now on
    server_time: float
    public_keys: dict[Id, str]  # key id -> base64 of the raw key: the keys to trust from now on
    # A key that the host does not trust yet is taken only with an endorsement by one that it trusts.
    endorsements: Annotated[tuple[Endorsement, ...], Meta(max_length=64)] = ()
    message: Text = ""
    token_due: bool = False  # request a new host token
    version: int = OLDEST_UNDERSTOOD


class TokenRequest(Message, frozen=True, kw_only=True):
    """Request the host's next token with the current one; only after a reply with `token_due`."""

    version: int = CONTRACT_VERSION


class TokenReply(Message, frozen=True, kw_only=True):
    """The next token, and the broker's URL with the host's next password. Its repr contains neither.

    The old ones stay valid until the first use of this token. A repeated request creates new ones and revokes these.
    """

    host_token: Annotated[str, Meta(min_length=20, max_length=200)]
    broker_url: Text
    version: int = CONTRACT_VERSION

    def __repr__(self) -> str:
        return "TokenReply()"


class Enrol(Message, frozen=True, kw_only=True):
    """Exchange a one-time token for the host's token. Its repr does not contain the token."""

    token: Annotated[str, Meta(min_length=10, max_length=200)]
    hostname: Label
    worker_version: Label
    oldest_contract: SmallCount
    newest_contract: SmallCount
    version: int = OLDEST_UNDERSTOOD

    def __repr__(self) -> str:
        return f"Enrol(hostname={self.hostname!r})"


class EnrolReply(Message, frozen=True, kw_only=True):
    """The host's token and broker user. Its repr contains neither."""

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
    """The body of every response with a status other than 200."""

    code: Id
    message: Text
    version: int = OLDEST_UNDERSTOOD
