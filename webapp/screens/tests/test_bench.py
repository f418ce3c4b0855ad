"""The page Bench: products in columns."""

import csv
import json
import re
from collections.abc import Callable
from html import unescape

import pytest
from django.db.models import F
from django.db.models.expressions import RawSQL
from django.test import Client
from django.utils.html import strip_tags

from webapp.analysis.services import save_comparison
from webapp.bench.assembly import answer
from webapp.bench.picking import Facet
from webapp.bench.saved import checked_query, selection_of
from webapp.bench.side_by_side import side_by_side
from webapp.bench.tests.conftest import INTEL, SAMSUNG
from webapp.core.models import User
from webapp.imports.references.reading import load_references
from webapp.pictures.elements import colours_of
from webapp.results.metrics import Missing
from webapp.results.models import Configuration, Import, Result, StreamRun
from webapp.tests.factories.hosts import a_drive, a_host
from webapp.tests.factories.imports import PLAIN, an_import
from webapp.tests.factories.results import FACTS, Lab
from worker.contract.packing import LAST_BUCKET_NS

ADDRESS = f"/bench/?product=model:{SAMSUNG}&product=model:{INTEL}"


@pytest.fixture
def labs(db: None) -> tuple[Lab, Lab]:
    """The same grid on two drives; the second one lacks a queue depth."""
    samsung = Lab(a_drive(a_host("storage1"), "nvme0", model=SAMSUNG, serial="S1", present=True))
    drive = a_drive(samsung.target.host, "nvme1", model=INTEL, serial="I1", present=True)
    intel = Lab(drive, version=samsung.run.version, number=2)
    for lab, speed in ((samsung, 1.0), (intel, 2.0)):
        for depth in (1, 2, 4):
            lab.measure(*(speed * 100 * depth * noise for noise in (0.99, 1.0, 1.01, 1.0)), iodepth=depth)
    samsung.measure(800.0, 801.0, iodepth=8)
    return samsung, intel


def shown(client: Client, address: str = ADDRESS) -> str:
    response = client.get(address)
    assert response.status_code == 200
    return unescape(response.content.decode())


def test_without_products_it_proposes_pairs_and_lists_what_has_results(operator: Client, labs: tuple[Lab, Lab]) -> None:
    page = operator.get("/bench/").content.decode()
    assert "Comparable pairs" in page
    assert page.count("1 plan in common") == 1
    assert 'value="serial:S1"' in page
    assert 'value="run:2"' in page


def test_a_product_with_own_and_imported_results_counts_for_both_sources(
    operator: Client, labs: tuple[Lab, Lab]
) -> None:
    an_import(drive=INTEL)
    picker = operator.get("/bench/").context["picker"]
    offers = {str(card.offer.product): card.offer for group in picker.groups for card in group.cards}
    sources = {name: {text for facet, text in offer.levels if facet is Facet.SOURCE} for name, offer in offers.items()}
    assert sources[f"model:{INTEL}"] == {"own", "import"}
    assert sources[f"model:{SAMSUNG}"] == {"own"}
    counts = facet_counts(operator)["source"]
    assert counts["own"] == sum("own" in each for each in sources.values())
    assert counts["import"] == sum("import" in each for each in sources.values())
    assert "reference" not in counts


def test_the_products_of_references_are_not_counted_as_references(operator: Client, labs: tuple[Lab, Lab]) -> None:
    """A reference may have several products; the page References counts references."""
    load_references()
    facets = {facet.facet: facet for facet in operator.get("/bench/").context["picker"].facets}
    ((_, text, count),) = [option for option in facets[Facet.SOURCE].options if option[0] == "reference"]
    references = len(operator.get("/references/").context["references"])
    assert (text, count > references) == (f"Products of {references} references", True)


def test_the_legend_of_the_plot_names_only_marks_that_are_drawn(operator: Client, labs: tuple[Lab, Lab]) -> None:
    repeated = operator.get(ADDRESS).context["sections"].forest
    marks = [mark for part in repeated.parts for *_, rows, _ in part.groups for row in rows for mark in row.ratios]
    assert {mark.state for mark in marks} == {"different"}
    assert ("Whisker" in repeated.key) is any(mark.whisker[0] for mark in marks)
    assert repeated.key.partition("Whisker")[0].strip() == "Filled: different."


def test_a_ratio_of_single_values_within_the_margin_is_grey(operator: Client, db: None) -> None:
    samsung = Lab(a_drive(a_host("storage1"), "nvme0", model=SAMSUNG, serial="S1"))
    drive = a_drive(samsung.target.host, "nvme1", model=INTEL, serial="I1")
    intel = Lab(drive, version=samsung.run.version, number=2)
    for depth, ratio in ((1, 2.0), (2, 0.99), (4, 1.0)):
        samsung.measure(100.0 * depth, iodepth=depth)
        intel.measure(100.0 * depth * ratio, iodepth=depth)
    page = shown(operator)
    assert page.count("ratio-once is-inside") == 2
    assert "Hollow: measured once. Hollow grey: measured once, within ±5 %." in page
    assert not re.findall("Filled|Whisker", page)


def facet_counts(client: Client) -> dict[str, dict[str, int]]:
    facets = client.get("/bench/").context["picker"].facets
    return {facet.facet: {level: count for level, _, count in facet.options} for facet in facets}


def test_products_have_the_models_controllers_hosts_and_layouts_of_their_results(
    operator: Client, labs: tuple[Lab, Lab]
) -> None:
    made = an_import(drive="PM9A3", host="lab1")
    made.origins.update(controller="H740P", layout="RAID 10")
    counts = facet_counts(operator)
    of_samsung = ("model", "serial", "target", "host", "run")
    assert counts["model"][SAMSUNG] == len(of_samsung)
    assert counts["host"]["storage1"] == 2 * len(of_samsung) - 1  # both drives are in one host
    of_import = ("import", "host", "controller", "model", "layout")
    assert counts["host"]["lab1"] == len(of_import)
    assert "controller" not in counts  # one controller tells no products apart
    assert set(counts) == {"kind", "source", "model", "host"}


def test_own_drives_have_the_controller_of_their_newest_result(operator: Client, db: None) -> None:
    host = a_host("storage1")
    for place, controllers in enumerate((("Old HBA", "HBA"), ("RAID",))):
        lab = Lab(a_drive(host, f"sd{place}", model=f"M{place}", serial=f"S{place}"), number=place + 1)
        for controller in controllers:
            lab.measure(100.0, facts=FACTS | {"device.controller.model": controller})
    for configuration in Configuration.objects.all():
        configuration.controller = configuration.facts["device.controller.model"]
        configuration.save()
    picker = operator.get("/bench/").context["picker"]
    offers = {str(card.offer.product): card.offer for group in picker.groups for card in group.cards}
    by_product = {
        name: {text for facet, text in offer.levels if facet is Facet.CONTROLLER} for name, offer in offers.items()
    }
    assert (by_product["serial:S0"], by_product["serial:S1"]) == ({"HBA"}, {"RAID"})
    assert (Facet.HOST, "storage1") in offers["controller:RAID"].levels
    assert offers["serial:S1"].note.endswith("RAID")
    assert facet_counts(operator)["controller"]["RAID"] >= 4  # the drive, its model, its target and the controller


def test_one_product_is_a_page_and_too_few_to_compare(operator: Client, labs: tuple[Lab, Lab]) -> None:
    one = f"/bench/?product=model:{SAMSUNG}&metric=latency_p99"
    assert "picker" in operator.get(one).context
    assert operator.get(one).context["found"]
    choosing = operator.get(f"{one}&compare=1").context
    assert "found" not in choosing
    assert choosing["is_sent"]
    assert [str(card.offer.product) for card in choosing["picker"].chosen] == [f"model:{SAMSUNG}"]
    assert choosing["picker"].kept == (("metric", "latency_p99"),)
    assert operator.get("/bench/?compare=1").context["is_sent"]
    assert not operator.get("/bench/").context["is_sent"]


def test_two_products_of_the_form_have_the_address_of_bench(operator: Client, labs: tuple[Lab, Lab]) -> None:
    answer = operator.get(f"{ADDRESS}&metric=latency_p99&compare=1")
    products = "product=model%3ASAMSUNG+MZQL21T9HCJR&product=model%3AINTEL+SSDPF2KX038TZ"
    assert (answer.status_code, answer["Location"]) == (302, f"/bench/?{products}&metric=latency_p99")


def test_cards_say_what_they_share_and_those_without_are_last(operator: Client, labs: tuple[Lab, Lab]) -> None:
    other = Lab(a_drive(labs[0].target.host, "nvme2", model="A DRIVE", serial="T1"), number=3)
    other.measure(5.0, iodepth=64)
    context = operator.get(f"/bench/?product=model:{SAMSUNG}&compare=1").context
    (models,) = (group for group in context["picker"].groups if group.label == "Drive models")
    assert [(card.offer.text, card.share.count) for card in models.cards] == [(INTEL, 3), ("A DRIVE", 0)]
    shares = operator.get("/bench/shares.json", {"product": f"model:{SAMSUNG}"}).json()["shares"]
    counts = {share["product"]: share["count"] for share in shares}
    assert counts[f"model:{INTEL}"] == 3
    assert counts["model:A DRIVE"] == 0
    every = [card for group in context["picker"].groups for card in group.cards]
    assert context["comparable"] == sum(counts[str(card.offer.product)] > 0 for card in every)


def test_of_results_that_were_not_read_the_number_of_comparable_products_is_a_bound(
    operator: Client, labs: tuple[Lab, Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"/bench/?product=model:{SAMSUNG}&compare=1"
    assert not operator.get(address).context["is_bound"]
    monkeypatch.setattr("webapp.bench.overlap.MAX_READ", 1)
    labs[0].measure(100.0, iodepth=16)  # computed again
    assert operator.get(address).context["is_bound"]


def test_shares_of_an_address_that_cannot_be_read_are_refused(operator: Client, db: None) -> None:
    assert operator.get("/bench/shares.json?product=drive:x").status_code == 422


def test_without_results_it_says_what_to_do(operator: Client) -> None:
    assert "No results yet" in operator.get("/bench/").content.decode()


def test_products_are_columns_with_one_colour_each(operator: Client, labs: tuple[Lab, Lab]) -> None:
    page = shown(operator)
    assert page.index(SAMSUNG) < page.index(INTEL)
    colours = colours_of([SAMSUNG, INTEL])
    assert f'scope="col" class="colour-{colours[SAMSUNG]}"' in page
    assert set(re.findall(r"colour-[0-9]", page)) == {f"colour-{colour}" for colour in colours.values()}
    charts = json.loads(re.findall(r'id="bench-data"[^>]*>(.*?)</script>', page)[0])["charts"]
    assert {(series["colour"], series["name"]) for chart in charts for series in chart["series"]} == {
        (colours[SAMSUNG], SAMSUNG), (colours[INTEL], INTEL),
    }  # fmt: skip


def test_products_have_the_same_colours_in_explore_and_in_any_order(operator: Client, labs: tuple[Lab, Lab]) -> None:
    bench = shown(operator, f"/bench/?product=model:{INTEL}&product=model:{SAMSUNG}")
    charts = json.loads(re.findall(r'id="bench-data"[^>]*>(.*?)</script>', bench)[0])["charts"]
    found = {series["name"]: series["colour"] for chart in charts for series in chart["series"]}
    explore = shown(operator, "/explore/?x=iodepth&series=model&run=1,2")
    names = json.loads(re.findall(r'id="series-names"[^>]*>(.*?)</script>', explore)[0])
    assert {each["name"]: each["colour"] for each in names} == found


def test_a_curve_says_which_levels_were_not_measured(operator: Client, labs: tuple[Lab, Lab]) -> None:
    third = Lab(a_drive(labs[0].target.host, "nvme2", model="THIRD", serial="T1"), number=3)
    for depth in (1, 4):
        third.measure(5.0, iodepth=depth)
    page = shown(operator, f"{ADDRESS}&product=model:THIRD")
    assert "Dashed: levels in between were not measured (THIRD)." in page


def test_it_shows_the_verdict_the_plot_curves_and_findings(operator: Client, labs: tuple[Lab, Lab]) -> None:
    page = shown(operator)
    assert "Random read" in page
    assert page.count("<canvas") == 3  # the load curve, queue depths, and percentiles
    assert page.count('<td class="forest-text ratio-different"') == 3
    assert page.count("<h1") == 1
    assert "×2.00" in page
    assert f"{INTEL} has ×2.00 the IOPS of {SAMSUNG}" in page
    assert "3 of 4 workloads shared" in page


def test_the_baseline_is_in_the_address(operator: Client, labs: tuple[Lab, Lab]) -> None:
    page = shown(operator, f"{ADDRESS}&baseline=model:{INTEL}")
    assert f"{SAMSUNG} has ×0.50 the IOPS of {INTEL}" in page


def test_a_baseline_that_is_no_longer_chosen_is_the_slower_product(operator: Client, labs: tuple[Lab, Lab]) -> None:
    assert "×2.00" in shown(operator, f"{ADDRESS}&baseline=host:gone")


def test_the_metric_of_bars_and_curves_can_be_chosen(operator: Client, labs: tuple[Lab, Lab]) -> None:
    page = shown(operator, f"{ADDRESS}&metric=latency_mean")
    assert "← lower" in page
    assert 'aria-current="page">Mean latency' in page


def test_what_a_product_lacks_is_not_measured_and_can_be_planned(operator: Client, labs: tuple[Lab, Lab]) -> None:
    page = shown(operator)
    assert "lacks 1 workload" in page
    answer = operator.post(ADDRESS.replace("?", "plan/?"), {"lacking": f"model:{INTEL}"}, follow=True)
    assert answer.redirect_chain == [("/plans/new/", 302)]
    editor = unescape(answer.content.decode())
    assert f"Missing on {INTEL}" in editor
    assert f"The plan has 1 workload that {INTEL} lacks." in editor
    assert re.search(r'name="p0.levels"[^>]*value="8"|name="common.levels"[^>]*value="8"', editor)
    assert re.search(rf'value="{labs[1].target.pk}" data-preview checked', editor)


@pytest.fixture
def third(labs: tuple[Lab, Lab]) -> Lab:
    """A drive that lacks three of the workloads of the others."""
    drive = a_drive(labs[0].target.host, "nvme2", model="THIRD", serial="T1", present=True)
    lab = Lab(drive, number=3)
    lab.measure(5.0, iodepth=1)
    return lab


WITH_THIRD = f"{ADDRESS}&product=model:THIRD"
PLAN_IN_CELL = re.compile(r'name="cell" value="(\w+ model:THIRD)">Plan<span class="visually-hidden">([^<]+)</span>')


def test_a_missing_number_has_the_same_words_on_page_report_file_and_api(
    operator: Client, labs: tuple[Lab, Lab], third: Lab
) -> None:
    """The third drive lacks some queue depths; at queue depth 1, Intel has too few I/Os for a p99."""
    Result.objects.filter(target__model=INTEL, point__iodepth=1).update(p99_ns=None)
    address = f"{WITH_THIRD}&metric=latency_p99&all=1"
    made = answer(side_by_side(selection_of(address.partition("?")[2])))
    missing = {(row.workload, row.title, one.product, one.why) for row in made.rows for one in row.missing}
    assert {why for *_, why in missing} == {Missing.NOT_MEASURED, Missing.NO_VALUE}
    file = operator.get(address.replace("/bench/", "/bench.csv")).getvalue().decode()
    lines = [line for line in csv.reader(file.splitlines()) if line[-1] in tuple(Missing)]
    assert {(line[1], line[0], line[5], line[-1]) for line in lines} == missing
    page = strip_tags(shown(operator, address))
    report = strip_tags(shown(operator, _report_of(operator, address.partition("?")[2])))
    for why in Missing:
        assert why in page
        assert why in report


def _report_of(operator: Client, query: str) -> str:
    by = User.objects.get(pk=operator.session["_auth_user_id"])
    saved = save_comparison(title="Missing", note="", query=query, by=by, check=checked_query)
    return f"/comparisons/{saved.pk}/report/"


def test_a_cell_that_nobody_measured_plans_exactly_its_workload(operator: Client, third: Lab) -> None:
    page = shown(operator, WITH_THIRD)
    cells = {name: cell for cell, name in PLAN_IN_CELL.findall(page)}
    assert all(name.endswith(" on THIRD") for name in cells)
    cell = cells[" Random read 4 KiB · QD 4 on THIRD"]
    answer = operator.post(WITH_THIRD.replace("?", "plan/?"), {"cell": cell}, follow=True)
    assert answer.redirect_chain == [("/plans/new/", 302)]
    editor = unescape(answer.content.decode())
    assert "The plan has 1 workload that THIRD lacks." in editor
    assert 'value="Random read 4 KiB · QD 4 on THIRD"' in editor
    assert re.search(r'levels"[^>]*value="4"', editor)
    assert not re.search(r'levels"[^>]*value="[^"]*\b[28]\b[^"]*"', editor)
    assert re.search(rf'value="{third.target.pk}" data-preview checked', editor)


@pytest.mark.parametrize("cell", ["0123456789abcdef model:THIRD", " model:THIRD", "0123456789abcdef model:ELSE"])
def test_a_cell_of_an_older_page_never_fails(operator: Client, third: Lab, cell: str) -> None:
    answer = operator.post(WITH_THIRD.replace("?", "plan/?"), {"cell": cell})
    assert (answer.status_code, answer["Location"]) == (302, "/plans/new/" if cell.startswith(" ") else "/bench/")


def test_a_product_without_a_usable_target_has_no_plan_and_its_cells_say_why(operator: Client, third: Lab) -> None:
    third.target.present = False
    third.target.save(update_fields=["present"])
    assert_not_planned(operator, "THIRD: no target can be used now.")


def assert_not_planned(operator: Client, why: str) -> None:
    """Neither a cell of THIRD nor the header plans anything, and both say why."""
    page = shown(operator, WITH_THIRD)
    assert f'title="{why}">' in page
    assert not PLAN_IN_CELL.findall(page)
    answer = operator.post(WITH_THIRD.replace("?", "plan/?"), {"lacking": "model:THIRD"}, follow=True)
    assert f"No plan was created. {why}" in answer.content.decode()


def test_a_stream_beside_others_cannot_be_planned_alone(operator: Client, third: Lab) -> None:
    for model in (SAMSUNG, INTEL):
        streams = RawSQL("""point || '{"stream": "reader", "beside": "writer"}'""", ())
        Result.objects.filter(target__model=model).update(point=streams)
    assert_not_planned(
        operator, "A stream beside others cannot be planned alone. Start the plan of the other product here."
    )


def test_a_measured_workload_without_the_shown_value_cannot_be_planned(operator: Client, third: Lab) -> None:
    Result.objects.filter(target__model="THIRD").update(p99_ns=None)
    page = shown(operator, f"{WITH_THIRD}&metric=latency_p99")
    assert 'title="Its results of this workload do not have this value.">' in page
    rows = dict(re.findall(r'<th scope="row" class="forest-label"><span>([^<]+)<(.*?)</tr>', page, re.DOTALL))
    assert "no value" in rows["1"]
    assert "Plan<" not in rows["1"]
    assert "not measured" in rows["4"]
    key = PLAN_IN_CELL.findall(page)[0][0].split()[0]
    answer = operator.post(WITH_THIRD.replace("?", "plan/?"), {"cell": f"{key} model:{SAMSUNG}"}, follow=True)
    assert f"{SAMSUNG} has results for this workload." in answer.content.decode()


def test_a_run_has_no_plan_and_its_cells_say_why(operator: Client, third: Lab) -> None:
    page = shown(operator, f"{ADDRESS}&product=run:3")
    assert 'title="A plan starts a new run. It cannot add results to this run.">' in page
    assert not re.findall(r'name="cell" value="\w+ run:3"', page)


@pytest.mark.parametrize("lacking", [f"model:{SAMSUNG}", "run:1", ""])
def test_nothing_is_planned_if_nothing_is_missing(operator: Client, labs: tuple[Lab, Lab], lacking: str) -> None:
    answer = operator.post(ADDRESS.replace("?", "plan/?"), {"lacking": lacking})
    assert (answer.status_code, answer["Location"]) == (302, "/bench/")


def test_no_claim_without_repeats(operator: Client, labs: tuple[Lab, Lab]) -> None:
    third = Lab(a_drive(labs[0].target.host, "nvme2", model="THIRD", serial="T1"), number=3)
    third.measure(5.0, iodepth=1)
    page = shown(operator, f"/bench/?product=model:{SAMSUNG}&product=model:THIRD")
    assert "were measured once" in page
    assert "measured once" in page
    assert not re.search(r'class="bench-ratio (better|worse)"', page)


def test_several_kernels_unfold_in_the_header_and_are_named_at_the_cell(
    operator: Client, labs: tuple[Lab, Lab]
) -> None:
    labs[0].measure(100.0, iodepth=1, facts=FACTS | {"kernel.release": "6.5.0"})
    page = shown(operator)
    assert "<summary>2 kernels</summary>" in page
    assert "mean over 2 kernels" in page
    assert "unknown" not in page  # rows that are unknown for all products are left out


def test_products_without_a_common_workload_can_be_matched_without_what_differs(operator: Client, db: None) -> None:
    host = a_host("h1")
    for number, runtime in ((1, 10), (2, 60)):
        lab = Lab(a_drive(host, f"nvme{number}", model=f"M{number}"), number=number)
        lab.measure(100.0 * number**2, iodepth=1, runtime=runtime)
    page = shown(operator, "/bench/?product=model:M1&product=model:M2")
    assert "No workload in common" in page
    (query,) = re.findall(r'href="(\?[^"]*ignore=runtime[^"]*)"', page)
    assert "×4.00" in shown(operator, f"/bench/{query}")


def test_a_pair_without_common_workloads_says_so_even_if_no_single_factor_is_the_cause(
    operator: Client, db: None
) -> None:
    host = a_host("h1")
    for number, depths in ((1, {"randread": 1, "randwrite": 2}), (2, {"randread": 2, "randwrite": 1})):
        lab = Lab(a_drive(host, f"nvme{number}", model=f"M{number}"), number=number)
        for pattern, depth in depths.items():
            lab.measure(100.0, pattern=pattern, iodepth=depth, direction=pattern.removeprefix("rand"))
    page = shown(operator, "/bench/?product=model:M1&product=model:M2")
    assert "no two products have results for the same workload" in page


def test_ignoring_is_not_offered_again_nor_for_patterns(operator: Client, db: None) -> None:
    host = a_host("h1")
    for number, pattern in ((1, "randread"), (2, "randwrite")):
        lab = Lab(a_drive(host, f"nvme{number}", model=f"M{number}"), number=number)
        lab.measure(100.0, pattern=pattern, runtime=10 * number, direction=pattern.removeprefix("rand"))
    page = shown(operator, "/bench/?product=model:M1&product=model:M2&ignore=runtime")
    assert "Factors without a common level" in page
    assert ">Runtime<" not in page
    assert ">Ignore " not in page


def test_of_three_products_it_says_what_all_and_what_two_of_them_share(operator: Client, labs: tuple[Lab, Lab]) -> None:
    third = Lab(a_drive(labs[0].target.host, "nvme2", model="THIRD", serial="T1"), number=3)
    third.measure(5.0, iodepth=1)
    page = shown(operator, f"{ADDRESS}&product=model:THIRD")
    assert "1 of 4 workloads measured by all 3 products, 3 by at least two" in page


def test_a_product_that_shares_nothing_with_the_baseline_is_named(operator: Client, labs: tuple[Lab, Lab]) -> None:
    third = Lab(a_drive(labs[0].target.host, "nvme2", model="THIRD", serial="T1"), number=3)
    third.measure(5.0, iodepth=64)
    page = shown(operator, f"{ADDRESS}&product=model:THIRD")
    assert f"THIRD was measured with Queue depth 64, and {SAMSUNG} with 1, 2, 4, 8." in page


def test_a_percentile_above_the_histogram_is_a_lower_bound(operator: Client, labs: tuple[Lab, Lab]) -> None:
    assert "above 17 s" not in shown(operator)
    Result.objects.filter(run=labs[0].run).update(p99_ns=LAST_BUCKET_NS)
    page = shown(operator)
    assert page.count("> 17 s</") == 5  # three loads, the table of values, percentiles
    assert "17,1" not in strip_tags(page.split("forest-title")[1])
    assert "A percentile above 17 s counts as 17 s" in page


def test_properties_that_only_some_products_state_are_folded(operator: Client, labs: tuple[Lab, Lab]) -> None:
    an_import()
    page = operator.get(f"/bench/?product=model:{SAMSUNG}&product=import:1").content.decode()
    specifications = page[page.index('id="differ-title"') :]
    known, _, partly = specifications.partition("that only some products state</summary>")
    assert '<th scope="row">Tool</th>' in known
    assert '<th scope="row">Kernel</th>' not in known
    assert '<th scope="row">Kernel</th>' in partly


def test_different_hosts_are_a_warning_beside_the_headlines(operator: Client, labs: tuple[Lab, Lab]) -> None:
    imported = an_import(title="In lab1", text=PLAIN.replace("10200", "10300"))
    page = shown(operator, f"/bench/?product=model:{SAMSUNG}&product=import:{imported.number}")
    assert f"Measured in different hosts ({SAMSUNG}: storage1; In lab1: lab1)" in page
    hosts = shown(operator, "/bench/?product=host:storage1&product=host:storage2")
    assert "Measured in different hosts" not in hosts
    one = shown(operator, "/bench/?product=serial:S1&product=target:storage1/nvme0")
    assert "Measured in different hosts" not in one
    made = an_import(title="Old tests", host="")
    unknown = shown(operator, f"/bench/?product=model:{SAMSUNG}&product=import:{made.number}")
    assert f"The hosts may differ ({SAMSUNG}: storage1; Old tests: unknown)." in unknown
    assert "These differ too: tool." in unknown  # nothing is known of the kernel of the import
    assert "Measured in different hosts" not in unknown


def test_drives_of_one_host_are_not_compared_over_kernels_without_a_warning(operator: Client, db: None) -> None:
    host, version = a_host("storage1"), None
    for number, kernel in ((1, "6.1.0"), (2, "6.12.0")):
        lab = Lab(a_drive(host, f"nvme{number}", model=f"M{number}"), version=version, number=number)
        version = lab.run.version
        lab.measure(100.0, 101.0, 102.0, facts=FACTS | {"kernel.release": kernel})
    warning = "Measured with different kernels. A difference may come from them instead of the product."
    assert warning in shown(operator, "/bench/?product=model:M1&product=model:M2")
    assert "Measured with different" not in shown(operator, "/bench/?product=run:1&product=run:2")
    StreamRun.objects.filter(attempt__run__number=2).update(configuration=None)
    assert "Measured with different" not in shown(operator, "/bench/?product=model:M1&product=model:M2")  # unknown


def test_a_mean_above_the_p99_is_a_doubt_of_latencies(operator: Client, labs: tuple[Lab, Lab]) -> None:
    page = shown(operator, f"{ADDRESS}&metric=latency_mean")
    assert "mean above p99: a few I/Os took very long" in page
    assert f"{SAMSUNG}, {INTEL}: the mean latency is above the p99." in page
    one, *others = Result.objects.filter(run=labs[0].run, point__iodepth=1).order_by("repeat")
    Result.objects.filter(pk__in=[other.pk for other in others]).update(p99_ns=100 * (one.latency_mean_ns or 0))
    page = shown(operator, f"{ADDRESS}&metric=latency_mean")
    assert f"mean above p99 in 1 of {1 + len(others)} results: a few I/Os took very long" in page
    assert f"{INTEL}: the mean latency is above the p99." in page
    assert f"{SAMSUNG}, {INTEL}: the mean latency" not in page  # the table has a p99 above the mean
    Result.objects.update(latency_mean_ns=3000.0)
    assert "above" not in shown(operator, f"{ADDRESS}&metric=latency_p50")


def test_opposite_differences_are_split_by_block_size(operator: Client, db: None) -> None:
    version = None
    host = a_host("h1")
    for number, speeds in ((1, (1.0, 1.0, 1.0)), (2, (1.5, 1.3, 0.8))):
        drive = a_drive(host, f"nvme{number}", model=f"M{number}")
        lab = Lab(drive, version=version, number=number)
        version = lab.run.version
        for block, speed in zip((4096, 65536, 1048576), speeds, strict=True):
            for depth in (1, 8):
                values = (1000 * depth * speed * noise for noise in (0.999, 1.0, 1.001, 1.0))
                lab.measure(*values, block_size=block, iodepth=depth)
    page = shown(operator, "/bench/?product=model:M1&product=model:M2")
    assert "M2 is faster than M1 at 4 KiB and 64 KiB (+30 % to +50 %), but slower at 1 MiB (−20 %)" in page


@pytest.mark.parametrize("query", ["product=drive:x", "product=model:a&metric=speed", "product=model:a&ignore=colour"])
def test_an_address_that_cannot_be_read_is_refused_with_the_picker(
    operator: Client, labs: tuple[Lab, Lab], query: str
) -> None:
    answer = operator.get(f"/bench/?{query}")
    assert answer.status_code == 422
    assert "bench-picker" in answer.content.decode()


def test_products_without_results_are_named(operator: Client, labs: tuple[Lab, Lab]) -> None:
    assert "GONE has no valid results" in shown(operator, f"{ADDRESS}&product=model:GONE")


@pytest.mark.parametrize("more", ["", "&product=host:storage1&product=target:storage1/nvme1&product=serial:S1"])
def test_the_number_of_queries_does_not_depend_on_products(
    queries_of: Callable[[str], int], labs: tuple[Lab, Lab], more: str
) -> None:
    assert queries_of(ADDRESS + more) <= 20


def test_selected_results_become_products(operator: Client, labs: tuple[Lab, Lab]) -> None:
    answer = operator.get("/bench/", {"result": [lab.run.results.earliest("id").pk for lab in labs]})
    assert answer["Location"] == "/bench/?product=model%3ASAMSUNG+MZQL21T9HCJR&product=model%3AINTEL+SSDPF2KX038TZ"


def test_selected_results_of_one_drive_become_runs(operator: Client, labs: tuple[Lab, Lab]) -> None:
    again = Lab(labs[0].target, number=9)
    (second,) = again.measure(100.0, iodepth=1)
    answer = operator.get("/bench/", {"result": [labs[0].run.results.earliest("id").pk, second.pk]})
    assert answer["Location"] == "/bench/?product=run%3A1&product=run%3A9"


def test_selected_results_of_references_become_these_references(operator: Client, labs: tuple[Lab, Lab]) -> None:
    made = [
        an_import(title="A blog", drive="X25-M"),
        an_import(title="A paper", drive="PM1733", text=PLAIN.replace("10200", "20400")),
    ]
    Import.objects.update(slug=F("title"))
    Result.objects.filter(origin__isnull=False).update(reference=True)
    ids = [Result.objects.filter(origin__imported=one).earliest("id").pk for one in made]
    answer = operator.get("/bench/", {"result": ids})
    assert answer["Location"] == "/bench/?product=import%3A1%2FX25-M&product=import%3A2%2FPM1733"
    assert "has no valid results" not in shown(operator, answer["Location"])


@pytest.mark.parametrize(
    ("address", "box"),
    [("/runs/", 'name="product" value="run:2"'), ("/hosts/", 'name="product" value="host:storage1"')],
)
def test_rows_of_lists_can_be_selected(operator: Client, labs: tuple[Lab, Lab], address: str, box: str) -> None:
    a_host("storage2")
    page = operator.get(address).content.decode()
    assert f'type="checkbox" form="compare-selected" {box}' in page
    assert "Compare selected" in page


def test_results_can_be_selected(operator: Client, labs: tuple[Lab, Lab]) -> None:
    newest = labs[0].run.results.latest("measured_at", "id")
    assert f'form="compare-selected" name="result" value="{newest.pk}"' in operator.get("/results/").content.decode()


def test_a_workload_of_results_that_were_not_read_is_not_called_unmeasured(
    operator: Client, labs: tuple[Lab, Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Two test points of each are read. Intel has 12 results of three."""
    monkeypatch.setattr("webapp.bench.reading.MAX_RESULTS", 24)
    monkeypatch.setattr("webapp.bench.reading.MAX_CELLS", 6)
    Result.objects.filter(target__model=SAMSUNG, point__iodepth__gt=2).delete()
    page = shown(operator, f"{ADDRESS}&product=target:storage1/nvme0")
    assert "not in the 8 results read" in page
    assert "not measured" in page  # by Samsung at queue depth 4, which is not cut
    assert f"{INTEL} has more than 8 results. The page reads the newest run of each plan" in page
    assert "8 results read · lacks 1 workload" in page


def test_of_a_controller_with_too_many_results_the_newest_are_read(
    operator: Client, labs: tuple[Lab, Lab], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("webapp.bench.reading.MAX_RESULTS", 8)
    Configuration.objects.update(controller="C1")
    page = shown(operator, "/bench/?product=controller:C1")
    assert "C1 has more than 8 results. The page reads the newest ones, up to this number." in page


def test_notes_name_what_nobody_measured_and_the_kind_of_latency(operator: Client, labs: tuple[Lab, Lab]) -> None:
    page = shown(operator)
    assert "No product has results of these patterns: random write, sequential read, sequential write." in page
    assert "completion latencies" not in page
    Result.objects.update(latency_kind="clat")
    assert "Latencies are completion latencies: they leave out the time of the submission." in shown(operator)


def test_of_runs_selected_in_a_list_the_oldest_is_the_baseline(operator: Client, labs: tuple[Lab, Lab]) -> None:
    answer = operator.get("/bench/?selected=1&product=run:2&product=run:1")
    assert answer["Location"] == "/bench/?product=run%3A1&product=run%3A2"


def test_selected_results_are_widened_to_their_products_in_words(operator: Client, labs: tuple[Lab, Lab]) -> None:
    ids = [lab.run.results.earliest("id").pk for lab in labs]
    page = unescape(operator.get("/bench/", {"result": ids}, follow=True).content.decode())
    assert "Bench shows all results of these drive models, not only the selected results." in page


def test_almost_equal_values_do_not_stand_at_the_two_ends_of_the_axis(operator: Client, db: None) -> None:
    host = a_host("h1")
    for number, rate in ((1, 200.0), (2, 200.2)):
        Lab(a_drive(host, f"nvme{number}", model=f"M{number}"), number=number).measure(rate)
    forest = operator.get("/bench/?product=model:M1&product=model:M2").context["sections"].forest
    (marks,) = (row.marks for part in forest.parts for *_, rows, _ in part.groups for row in rows)
    first, second = (float(mark.x) for mark in marks)
    assert abs(first - second) < 2  # percent of the width
