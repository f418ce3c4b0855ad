"""Two products that are shown beside each other."""

from collections.abc import Sequence

from webapp.bench.products import Kind, Product
from webapp.bench.side_by_side import Selection, SideBySide, side_by_side
from webapp.bench.tests.conftest import INTEL, SAMSUNG

MODELS = (Product(Kind.MODEL, SAMSUNG), Product(Kind.MODEL, INTEL))


def shown(products: Sequence[Product] = MODELS, **asked: object) -> SideBySide:
    return side_by_side(Selection(tuple(products), products[0], **asked))  # type: ignore[arg-type]
