"""Names of hosts. A former name is never reused, so an old address never leads to another machine.

Also the names of several targets at once: host/nvme0n1 + nvme1n1.
"""

import re
from collections.abc import Iterable

from django.utils.text import slugify

from webapp.core.errors import Refusal
from webapp.hosts.models import FormerName, Host

MAX_LENGTH = 63
BESIDE = " + "
NO_LABEL = "no label"  # label of results whose run was not started for a host group
RESERVED = frozenset({"add", "former", "removed"})  # used in the addresses of other pages
_FORM = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")


def checked_name(slug: str, *, host: Host | None = None) -> str:
    """The checked name for `host` (None: a new host). Raises Refusal with the reason."""
    if not _FORM.fullmatch(slug) or len(slug) > MAX_LENGTH:
        words = f"Use lowercase letters, digits and hyphens between them, at most {MAX_LENGTH} characters."
        raise Refusal("host_name_bad", f"{slug!r} is not a valid name. {words}")
    if slug in RESERVED:
        raise Refusal("host_name_bad", f"{slug} is used in addresses of Sweetspot. Choose another name.")
    taken = Host.objects.filter(slug=slug).first()
    if taken is not None and taken != host:
        where = " (it was removed; its results still carry the name)" if taken.archived_at else ""
        raise Refusal("host_name_taken", f"A host called {slug} already exists{where}. Choose another name.")
    former = FormerName.objects.select_related("host").filter(slug=slug).first()
    if former is not None and former.host != host:
        raise Refusal("host_name_taken", f"{slug} is a former name of {former.host}. Choose another name.")
    return slug


def group_name(first: str, further: Iterable[str]) -> str:
    """`first` is host/target or a target; `further` are slugs of more targets of the host, or host/target of other
    hosts. Slugs contain no spaces."""
    return BESIDE.join((first, *further))


def parted(name: str) -> tuple[str, list[str]]:
    """The host and the slugs of the targets in a name, which may contain several targets."""
    host, _, slugs = name.partition("/")
    return host, slugs.split(BESIDE)


def plain_slug(name: str) -> str:
    """A hostname as a slug: storage1.lab.example -> storage1-lab-example."""
    return slugify(name.replace(".", "-")).replace("_", "-")[:50].strip("-") or "host"


def free_slug(name: str) -> str:
    """The name as a slug, with a number appended if it is taken, a former name, or reserved."""
    wanted = plain_slug(name)
    taken = {*Host.objects.filter(slug__startswith=wanted).values_list("slug", flat=True), *RESERVED}
    taken |= set(FormerName.objects.filter(slug__startswith=wanted).values_list("slug", flat=True))
    candidates = [wanted, *(f"{wanted}-{number}" for number in range(2, len(taken) + 3))]
    return next(slug for slug in candidates if slug not in taken)
