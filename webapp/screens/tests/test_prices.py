"""Prices of drive models and controllers, and what Bench makes of them."""

from datetime import date

import pytest
from django.test import Client

from webapp.analysis.models import Price
from webapp.bench.products import Kind, Product
from webapp.bench.side_by_side import Selection, SideBySide, side_by_side
from webapp.bench.tests.conftest import INTEL, SAMSUNG, intel, samsung  # noqa: F401 - fixtures
from webapp.core.models import AuditEntry
from webapp.hosts.models import Target
from webapp.results.models import Configuration
from webapp.tests.factories.results import Lab

FACTS = {"device.size_bytes": "4000000000000"}


@pytest.fixture
def measured(samsung: Lab, intel: Lab) -> None:  # noqa: F811 - fixtures
    samsung.measure(100_000.0, facts=FACTS)
    intel.measure(150_000.0)


def enter(client: Client, name: str, amount: str, currency: str = "EUR", **other: str) -> str:
    given = {"kind": "model", "name": name, "amount": amount, "currency": currency, "priced_on": "2026-11-01"} | other
    return client.post("/products/price/", given, follow=True).content.decode()


def shown() -> SideBySide:
    return of_products(Product(Kind.MODEL, SAMSUNG), Product(Kind.SERIAL, "I1"))


def of_products(*products: Product, ignored: frozenset[str] = frozenset()) -> SideBySide:
    return side_by_side(Selection(products, products[0], ignored=ignored))


def test_an_operator_enters_changes_and_removes_a_price(operator: Client, measured: None) -> None:
    assert "250.00 EUR on 2026-11-01" in enter(operator, SAMSUNG, "250")
    assert "249.90 USD on 2026-11-01, entered by olga" in enter(operator, SAMSUNG, "249.90", "usd")
    assert Price.objects.count() == 1
    assert "No price is known" in enter(operator, SAMSUNG, "", remove="1")
    entries = AuditEntry.objects.filter(action__startswith="price.").order_by("at")
    assert [(entry.action, entry.label) for entry in entries] == [
        ("price.set", SAMSUNG), ("price.set", SAMSUNG), ("price.remove", SAMSUNG),
    ]  # fmt: skip
    assert entries[1].detail == {"amount": "249.90", "currency": "USD", "on": "2026-11-01"}


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"amount": "-1"}, "is not a price"), ({"amount": "NaN"}, "is not a price"),
        ({"amount": "1e12"}, "is not a price"),
        ({"amount": "1.999"}, "is not a price"), ({"currency": "€"}, "is not a currency"),
        ({"priced_on": "yesterday"}, "is not a date"), ({"kind": "host"}, "Only a model or a controller"),
    ],
)  # fmt: skip
def test_it_refuses_what_is_no_price(operator: Client, measured: None, given: dict[str, str], said: str) -> None:
    assert said in enter(operator, SAMSUNG, **({"amount": "1"} | given))
    assert not Price.objects.exists()


def test_a_viewer_sees_the_price_and_cannot_change_it(operator: Client, viewer: Client, measured: None) -> None:
    enter(operator, SAMSUNG, "250")
    page = viewer.get(f"/products/model/{SAMSUNG}/").content.decode()
    assert "250.00 EUR" in page
    assert "id-amount" not in page
    assert viewer.post("/products/price/", {"kind": "model"}).status_code == 403


def test_bench_divides_iops_and_capacity_by_the_price(operator: Client, measured: None) -> None:
    enter(operator, SAMSUNG, "250")
    enter(operator, INTEL, "500")
    price, iops, size = shown().per_price
    assert (price.label, price.texts[0]) == ("Price, EUR", "250.00 (2026-11-01)")
    assert (iops.label, iops.texts) == ("Random read, IOPS per EUR", ("400", "300"))
    assert (size.label, size.texts) == ("GB per EUR", ("16.0", ""))
    page = operator.get(f"/bench/?product=model:{SAMSUNG}&product=serial:I1").content.decode()
    assert "Random read, IOPS per EUR" in page
    answer = operator.get(f"/api/v1/bench?product=model:{SAMSUNG}&product=serial:I1").json()
    assert answer["products"][0]["price"] == {"amount": 250.0, "currency": "EUR", "priced_on": "2026-11-01"}


def test_bench_shows_nothing_without_all_prices_in_one_currency(operator: Client, measured: None) -> None:
    enter(operator, SAMSUNG, "250")
    assert shown().per_price == ()
    enter(operator, INTEL, "500", "USD")
    assert shown().per_price == ()


def test_iops_of_a_layout_are_not_divided_by_the_price_of_one_drive(
    operator: Client,
    samsung: Lab,  # noqa: F811 - fixture
    intel: Lab,  # noqa: F811 - fixture
) -> None:
    for lab in (samsung, intel):
        lab.measure(4000.0, layout="raid0 x4 chunk 64k / xfs")
    enter(operator, SAMSUNG, "100")
    enter(operator, INTEL, "200")
    assert [line.texts for line in shown().per_price if "IOPS" in line.label] == [("", "")]


def test_the_capacity_is_that_of_one_drive(
    operator: Client,
    samsung: Lab,  # noqa: F811 - fixture
    intel: Lab,  # noqa: F811 - fixture
) -> None:
    samsung.measure(4000.0, layout="raid0 x4", facts=FACTS)
    intel.measure(4000.0, facts=FACTS)
    enter(operator, SAMSUNG, "100")
    enter(operator, INTEL, "200")
    assert [line.texts for line in shown().per_price if "GB" in line.label] == [("", "20.0")]


def test_prices_of_controllers_divide_neither_capacity_nor_iops_of_several_hosts(
    samsung: Lab,  # noqa: F811 - fixture
    intel: Lab,  # noqa: F811 - fixture
) -> None:
    Target.objects.filter(model=SAMSUNG).update(model=INTEL)  # controllers are compared over one model
    for lab, name, hosts in ((samsung, "M1015", 2), (intel, "LSI 9266", 1)):
        lab.measure(4000.0, hosts_at_once=hosts, facts=FACTS | {"name": name})
        Configuration.objects.filter(facts__name=name).update(controller=name)
        Price.objects.create(kind="controller", name=name, amount=100, currency="EUR", priced_on=date(2026, 11, 1))
    Price.objects.create(kind="model", name=INTEL, amount=100, currency="EUR", priced_on=date(2026, 11, 1))
    controllers = [Product(Kind.CONTROLLER, "M1015"), Product(Kind.CONTROLLER, "LSI 9266")]
    found = of_products(*controllers, ignored=frozenset({"hosts_at_once"}))
    assert {line.label: line.texts for line in found.per_price} == {
        "Price, EUR": ("100.00 (2026-11-01)", "100.00 (2026-11-01)"),
        "Random read, IOPS per EUR": ("", "40.0"),
    }
    assert of_products(controllers[1], Product(Kind.MODEL, INTEL)).per_price == ()
