"""Pages for `make screens` beside those of the URL table: views of Explore, a drive, a controller, a trend."""

from typing import TYPE_CHECKING

from django.urls import reverse

if TYPE_CHECKING:
    from webapp.runs.models import Run

_EXPLORE = {
    "explore-box": "chart=box",
    "explore-scatter": "chart=scatter",
    "explore-heat": "chart=heat",
    "explore-ceilings": "metric=bytes_per_s&ceilings=on&lines=all",
    "explore-latency": "view=latency",
    "explore-timeline": "view=timeline",
}
_GRID = "x25-m-lvm-stripe"  # a reference: block sizes × jobs


def explore_variants(query: str) -> dict[str, str]:
    """Paths by page name: the comparison of `query` in every view, and a reference as a heat map with contours."""
    from webapp.results.models import Import

    found = {name: f"{reverse('explore')}?{query}&{options}" for name, options in _EXPLORE.items()}
    grid = Import.objects.filter(slug=_GRID).first()
    if grid is not None:
        asked = f"import={grid.number}&x=numjobs&series=block_size&panel=pattern&chart=heat"
        found["explore-contours"] = f"{reverse('explore')}?{asked}"
    return found


def product_variants(run: "Run") -> dict[str, str]:
    """The trend of the run's plan at its first target, that target's drive, and any observed controller."""
    from webapp.results.models import Configuration

    target = run.targets.select_related("host").first()
    found = {}
    if target is not None:
        found["trend"] = f"{reverse('trends')}?plan={run.version.plan.slug}&target={target}"
    if target is not None and target.serial:
        found["product-drive"] = reverse("product", args=["serial", target.serial])
    controller = Configuration.objects.exclude(controller="").values_list("controller", flat=True).first()
    if controller:
        found["product-controller"] = reverse("product", args=["controller", controller])
    return found
