"""Check the policy for a setting: by target for devices and controllers, else by host."""

from worker.open_target import OpenTarget
from worker.policy import Policy
from worker.settings.base import Setting, SettingError, SettingScope


def refuse_unallowed(setting: Setting, open_target: OpenTarget, policy: Policy) -> None:
    """Raises SettingError, which names the place in the policy that must allow the setting."""
    if setting.scope is SettingScope.HOST:
        if setting.name not in policy.host_settings:
            raise SettingError(
                "setting_not_allowed",
                f"{policy.path} does not allow changing {setting.name} of the host: add it to settings under [host].",
            )
        return
    for target in [drive.id for drive in policy.drives(open_target.target)] or [open_target.target]:
        _refuse_unlisted(setting, target, policy)


def _refuse_unlisted(setting: Setting, target: str, policy: Policy) -> None:
    entry = policy.entry(target)
    if entry is None or setting.name not in entry.settings:
        by_name = " by name; “*” does not include it" if setting.by_name_only else ""
        raise SettingError(
            "setting_not_allowed",
            f"{policy.path} does not allow changing {setting.name} of target {target!r}: "
            f"add it to its settings{by_name}.",
        )
