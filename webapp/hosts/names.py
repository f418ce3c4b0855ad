"""What a host may be called: one name each for ever, so that an old address never leads to another machine.

And what targets of a host that are used at once are called together: host/nvme0n1 + nvme1n1.
"""

import re
from collections.abc import Iterable

from django.utils.text import slugify

from webapp.core.errors import Refusal
from webapp.hosts.models import FormerName, Host

MAX_LENGTH = 63
BESIDE = " + "
NO_LABEL = "no label"  # of results whose run was not started for a host of a group
RESERVED = frozenset({"add", "former", "removed"})  # words of our own addresses
_FORM = re.compile(r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?")


def checked_name(slug: str, *, host: Host | None = None) -> str:
    """The name as it may be given to `host` (None: a new one). Raises Refusal saying what is wrong with it."""
    if not _FORM.fullmatch(slug) or len(slug) > MAX_LENGTH:
        words = f"A name has lower-case letters, digits and hyphens between them, at most {MAX_LENGTH} in all."
        raise Refusal("host_name_bad", f"{slug!r} cannot be a name. {words}")
    if slug in RESERVED:
        raise Refusal("host_name_bad", f"{slug} is a word of Sweetspot's own addresses. Choose another name.")
    taken = Host.objects.filter(slug=slug).first()
    if taken is not None and taken != host:
        where = " (it was removed; its results still carry the name)" if taken.archived_at else ""
        raise Refusal("host_name_taken", f"There is already a host called {slug}{where}. Choose another name.")
    former = FormerName.objects.select_related("host").filter(slug=slug).first()
    if former is not None and former.host != host:
        raise Refusal("host_name_taken", f"{slug} is what {former.host} was called before. Choose another name.")
    return slug


def group_name(first: str, further: Iterable[str]) -> str:
    """`first` is host/target, or target alone; `further` are slugs of others of the host. No slug has a blank."""
    return BESIDE.join((first, *further))


def parted(name: str) -> tuple[str, list[str]]:
    """The host and the slugs of the targets in a name, which may be that of a group."""
    host, _, slugs = name.partition("/")
    return host, slugs.split(BESIDE)


def plain_slug(name: str) -> str:
    """A host name as one of ours: storage1.lab.example -> storage1-lab-example."""
    return slugify(name.replace(".", "-")).replace("_", "-")[:50].strip("-") or "host"


def free_slug(name: str) -> str:
    """The name as a slug, with a number behind it where it is taken, was taken before, or is a word of ours."""
    wanted = plain_slug(name)
    taken = {*Host.objects.filter(slug__startswith=wanted).values_list("slug", flat=True), *RESERVED}
    taken |= set(FormerName.objects.filter(slug__startswith=wanted).values_list("slug", flat=True))
    candidates = [wanted, *(f"{wanted}-{number}" for number in range(2, len(taken) + 3))]
    return next(slug for slug in candidates if slug not in taken)
