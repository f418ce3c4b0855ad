"""The registry of order handlers, by kind of order."""

from collections.abc import Mapping

from worker.contract.orders import AnyOrder, CloseRunOrder, InventoryOrder, PurgeOrder, SettingOrder, TrialOrder
from worker.orders import close_run, inventory, manual_setting, purge, trial
from worker.orders.context import Handler

HANDLERS: Mapping[type[AnyOrder], Handler] = {
    TrialOrder: trial.carry_out,
    CloseRunOrder: close_run.carry_out,
    PurgeOrder: purge.carry_out,
    SettingOrder: manual_setting.carry_out,
    InventoryOrder: inventory.carry_out,
}
