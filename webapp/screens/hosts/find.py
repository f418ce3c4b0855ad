"""The host that an address names."""

from django.http import Http404

from webapp.hosts.models import Host
from webapp.hosts.selectors import host_named


def host_or_404(slug: str) -> Host:
    """Also by a name that it had before; its slug then is not the one asked for."""
    host = host_named(slug)
    if host is None:
        raise Http404(f"There is no host {slug}.")
    return host
