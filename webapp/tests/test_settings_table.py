"""The worker's registry of settings, the server's table of factors and the documentation say the same."""

from webapp.plans.factors import FACTORS, FactorKind
from webapp.plans.fitness import HOST_WIDE
from webapp.plans.setting_rows import CONTROLLER, SETTING_ROWS
from worker.settings import REGISTRY
from worker.settings.base import SettingScope


def test_every_setting_of_the_worker_is_a_factor() -> None:
    assert {name for name, factor in FACTORS.items() if factor.kind is FactorKind.SETTING} == set(REGISTRY)


def test_both_sides_agree_what_a_setting_touches() -> None:
    assert {name for name, setting in REGISTRY.items() if setting.scope is SettingScope.HOST} == HOST_WIDE
    costly = {row.name for row in SETTING_ROWS if row.cost == CONTROLLER}
    assert {name for name, setting in REGISTRY.items() if setting.scope is SettingScope.CONTROLLER} == costly


def test_every_factor_has_a_label_of_its_own() -> None:
    labels = [factor.label for factor in FACTORS.values()]
    assert len(set(labels)) == len(labels)
