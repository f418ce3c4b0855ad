"""IOPS per price of the drives, from the prices that people entered for drive models.

The directions of a trial are one row, because the price is that of all of them. A result has no value if the number of
its drives or the price of one is unknown. Amounts in several currencies are not compared.
"""

import dataclasses
from collections.abc import Iterable, Mapping, Sequence

from msgspec.structs import replace

from webapp.compare.distinct_drives import drives_of_trials
from webapp.compare.layout_parts import layout_of
from webapp.compare.mixes import totals
from webapp.compare.models import Price
from webapp.compare.observed_rows import Observed
from webapp.plans.points import target_count
from webapp.results.metrics import Metric
from webapp.results.reading.rows import ResultRow

IOPS_PER_PRICE = Metric("iops_per_price", "IOPS per price", "IOPS per price", "", "", "number")


def with_iops_per_price(rows: Sequence[ResultRow]) -> Observed:
    """The rows with this metric, if it is known; notes with the prices, or why there is no value.

    One query, and two for trials with several targets.
    """
    prices = _prices_of(rows)
    currencies = sorted({price.currency for price in prices.values()})
    if len(currencies) != 1:
        return Observed(rows, IOPS_PER_PRICE, (_without_value(rows, currencies),))
    rows = totals(rows)
    values = _values(rows, prices)
    with_values = [
        replace(row, metrics={**row.metrics, IOPS_PER_PRICE.key: values[row.id]}) if row.id in values else row
        for row in rows
    ]
    return Observed(with_values, _in_currency(currencies[0]), (_prices_in_words(prices, currencies[0]),))


def has_prices(rows: Iterable[ResultRow]) -> bool:
    """Whether a drive model of these results has a price. One query."""
    return bool(_prices_of(rows))


def _in_currency(currency: str) -> Metric:
    label = f"IOPS per {currency}"
    return dataclasses.replace(IOPS_PER_PRICE, label=label, short=label, unit=f"IOPS/{currency}")


def _values(rows: Sequence[ResultRow], prices: Mapping[str, Price]) -> Mapping[int, float]:
    """By result id."""
    by_trial = drives_of_trials({row.trial_id for row in rows if row.trial_id and target_count(row.point) > 1})
    amounts = ((row, _amount(row, prices, by_trial)) for row in rows)
    return {row.id: row.iops / amount for row, amount in amounts if amount and row.iops is not None}


def _without_value(rows: Iterable[ResultRow], currencies: Sequence[str]) -> str:
    if currencies:
        return f"The prices are in {' and '.join(currencies)}. Enter them in one currency on the pages of the models."
    models = ", ".join(sorted({row.model for row in rows if row.model})) or "unknown"
    return f"No drive model of these results has a price ({models}). Enter prices on the pages of the models."


def _prices_in_words(prices: Mapping[str, Price], currency: str) -> str:
    said = (f"{name} {price.amount:,} ({price.priced_on})" for name, price in sorted(prices.items()))
    return f"Prices of one drive, in {currency}: {', '.join(said)}."


def _prices_of(rows: Iterable[ResultRow]) -> Mapping[str, Price]:
    found = Price.objects.filter(kind="model", name__in={row.model for row in rows if row.model})
    return {price.name: price for price in found}


def _amount(row: ResultRow, prices: Mapping[str, Price], by_trial: Mapping[str, int]) -> float | None:
    """The price of all drives of a result, which must be of one model."""
    price, drives = prices.get(row.model), _drives(row, by_trial)
    return float(price.amount) * drives if price and drives else None


def _drives(row: ResultRow, by_trial: Mapping[str, int]) -> int | None:
    """`by_trial`: the drives of trials with several targets. None if the number is unknown."""
    if row.layout:
        layout = layout_of(row.layout)
        return layout.drives * target_count(row.point) if layout else None
    return 1 if target_count(row.point) == 1 else by_trial.get(row.trial_id)
