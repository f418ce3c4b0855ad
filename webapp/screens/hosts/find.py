"""Finds the host of an address."""

from django.http import Http404

from webapp.hosts.models import Host
from webapp.hosts.selectors import host_named


def host_or_404(slug: str) -> Host:
    """The host with this name or former name; in the latter case its slug differs."""
    host = host_named(slug)
    if host is None:
        raise Http404(f"There is no host {slug}.")
    return host
