"""The file of the Grafana dashboard. It was not opened in Grafana, because Debian has no package of Grafana.

Its fields were checked by the type `Dashboard` of the npm package @grafana/schema 10.4.
"""

from itertools import combinations

from webapp.core.tests.targets import DOCUMENT, targets

COLUMNS = 24
UNITS = {"short", "s", "bytes", "none"}


def test_each_panel_has_a_place_of_its_own() -> None:
    cells = [_cells(panel["gridPos"]) for panel in DOCUMENT["panels"]]
    assert not [pair for pair in combinations(cells, 2) if pair[0] & pair[1]]
    assert all(column < COLUMNS for each in cells for column, _ in each)


def _cells(place: dict[str, int]) -> set[tuple[int, int]]:
    columns, lines = range(place["x"], place["x"] + place["w"]), range(place["y"], place["y"] + place["h"])
    return {(column, line) for column in columns for line in lines}


def test_panels_have_different_numbers_and_titles() -> None:
    for key in ("id", "title"):
        values = [panel[key] for panel in DOCUMENT["panels"]]
        assert len(set(values)) == len(values)


def test_each_panel_shows_queries_of_the_chosen_data_source() -> None:
    variables = {each["name"] for each in DOCUMENT["templating"]["list"]}
    assert variables == {"datasource", "host"}
    for panel in DOCUMENT["panels"]:
        if panel["type"] == "row":
            continue
        assert panel["type"] in ("timeseries", "stat")
        assert panel["fieldConfig"]["defaults"]["unit"] in UNITS
        assert panel["targets"]
        for part in (panel, *panel["targets"]):
            assert part["datasource"] == {"type": "prometheus", "uid": "${datasource}"}


def test_the_host_that_is_chosen_filters_every_metric_of_hosts() -> None:
    for target in targets():
        assert ("{{host}}" in target["legendFormat"]) == ('{host=~"$host"}' in target["expr"]), target
