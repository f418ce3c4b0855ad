"""Parts of other pages about hosts."""

from typing import Any

from django import template
from django.template import Context

from webapp.hosts.models import Host, HostState
from worker.recipes import ENGINES

register = template.Library()


@register.inclusion_tag("screens/parts/hosts_at_rest.html", takes_context=True)
def hosts_at_rest(context: Context) -> dict[str, Any]:
    """Hosts in maintenance, whose targets cannot be chosen, with the reason. One query."""
    return {"hosts": Host.objects.filter(state=HostState.MAINTENANCE), "request": context["request"]}


@register.filter
def engines(host: Host) -> list[tuple[str, dict[str, Any]]]:
    """The label and the offer of each engine that works on the host, its version without the label."""
    labels = {workload.engine_name(): recipe.LABEL for workload, recipe in ENGINES.items()}
    offers = [(labels.get(name, name), offer) for name, offer in host.capabilities.get("engines", {}).items()]
    return [(label, offer | {"version": offer["version"].removeprefix(f"{label}-")}) for label, offer in offers]
