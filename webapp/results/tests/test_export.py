from webapp.plans.engines import ENGINES
from webapp.plans.factors import FACTORS
from webapp.results.export import kind_of


def test_a_factor_has_the_same_type_in_every_engine() -> None:
    """The columns have the types of the first engine with the factor; another type could not be written."""
    wrong = [
        (name, factor.name)
        for name, engine in ENGINES.items()
        for factor in engine.FACTORS
        if kind_of(factor) is not kind_of(FACTORS[factor.name])
    ]
    assert wrong == []
