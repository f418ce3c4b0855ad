"""What the tests of comparisons measure and read."""

from webapp.analysis.answer import Comparison
from webapp.analysis.question import CompareQuery
from webapp.analysis.tests.orders import alternate
from webapp.tests.factories.results import FACTS, Lab

ENGINES = CompareQuery(x="iodepth", series=("ioengine",), baseline="io_uring")


def measure_engines(lab: Lab) -> None:
    lab.measure(99.0, 100.0, 101.0, iodepth=1)
    lab.measure(990.0, 1000.0, 1010.0, iodepth=32)
    lab.measure(61.5, 62.0, 62.5, iodepth=1, ioengine="psync", facts=FACTS)
    lab.measure(800.0, 800.0, 800.0, iodepth=32, ioengine="psync")
    alternate(lab.run)


def sentence(made: Comparison) -> str:
    return next(series.sentence for series in made.panels[0].series if series.sentence)
