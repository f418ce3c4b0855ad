"""IOPS and capacity of a drive per price, if all products have a price in one currency."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from webapp.analysis.models import Price
from webapp.bench.products import Kind, Product
from webapp.core.formatting import significant
from webapp.plans.points import hosts_at_once, target_count
from webapp.results.reading.rows import ResultRow

SIZE = "device.size_bytes"
GB = 1_000_000_000
Priced = tuple[str, str]  # kind and name of a price


@dataclass(frozen=True)
class PerPrice:
    """One line of the table; "" where a value is unknown."""

    label: str
    words: str
    texts: tuple[str, ...]


def prices_of(rows_of_products: Mapping[Product, Sequence[ResultRow]]) -> dict[Product, Price]:
    """The price of a product is that of its drive model or controller. One query, or none."""
    wanted = {product: priced for product, rows in rows_of_products.items() if (priced := _priced(product, rows))}
    if not wanted:
        return {}
    known = {
        (price.kind, price.name): price
        for price in Price.objects.filter(name__in={name for _, name in wanted.values()})
    }
    return {product: known[priced] for product, priced in wanted.items() if priced in known}


def _priced(product: Product, rows: Sequence[ResultRow]) -> Priced | None:
    """None for a product that is not one drive model or one controller."""
    if product.kind in (Kind.MODEL, Kind.CONTROLLER):
        return product.kind.value, product.value
    models = {row.model for row in rows} if product.kind in (Kind.SERIAL, Kind.TARGET) else set()
    return (Kind.MODEL.value, models.pop()) if len(models) == 1 else None


def per_price(
    rows_of_products: Mapping[Product, Sequence[ResultRow]],
    prices: Mapping[Product, Price],
    iops: Sequence[tuple[str, str, Sequence[float | None]]],
) -> tuple[PerPrice, ...]:
    """`iops`: title, workload and the means of the products. Empty unless all have prices in one currency, and all
    prices are of drives or all of controllers."""
    of_controllers = {product.kind is Kind.CONTROLLER for product in rows_of_products}
    currencies = {price.currency for price in prices.values()}
    if set(prices) != set(rows_of_products) or len(currencies) != 1 or len(of_controllers) != 1:
        return ()
    return tuple(_lines(rows_of_products, prices, iops))


def _lines(
    rows_of_products: Mapping[Product, Sequence[ResultRow]],
    prices: Mapping[Product, Price],
    iops: Sequence[tuple[str, str, Sequence[float | None]]],
) -> Iterator[PerPrice]:
    amounts = [float(prices[product].amount) for product in rows_of_products]
    currency = next(iter(prices.values())).currency
    texts = tuple(f"{prices[product].amount:,} ({prices[product].priced_on})" for product in rows_of_products)
    yield PerPrice(f"Price, {currency}", "as entered, with its date", texts)
    for title, words, means in iops:
        yield PerPrice(f"{title}, IOPS per {currency}", words, _divided(means, amounts))
    sizes = [_size(rows) for rows in rows_of_products.values()]
    if any(sizes) and not any(product.kind is Kind.CONTROLLER for product in rows_of_products):
        yield PerPrice(f"GB per {currency}", "decimal gigabytes of one drive", _divided(sizes, amounts))


def has_several_drives(row: ResultRow) -> bool:
    return bool(row.layout) or target_count(row.point) > 1


def has_several_controllers(row: ResultRow) -> bool:
    """Hosts at once have a controller each."""
    return hosts_at_once(row.point) > 1


def _divided(values: Sequence[float | None], amounts: Sequence[float]) -> tuple[str, ...]:
    pairs = zip(values, amounts, strict=True)
    return tuple(significant(value / amount) if value is not None else "" for value, amount in pairs)


def _size(rows: Sequence[ResultRow]) -> float | None:
    """Of one drive in GB; None if it is unknown or differs between drives."""
    sizes = {row.facts.get(SIZE, "") for row in rows if not has_several_drives(row)} - {""}
    text = sizes.pop() if len(sizes) == 1 else ""
    return int(text) / GB if text.isdecimal() else None
