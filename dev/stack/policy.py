"""Policy files for workers: the targets they may use, in the format that an administrator writes."""

import json
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class PolicyTarget:
    """One [[target]] of a policy file (worker/deploy/policy.example.toml explains each line)."""

    id: str
    kind: str
    path: str
    stable_id: str = ""  # required for a block device
    serial: str = ""
    destroy: bool = False
    settings: tuple[str, ...] = ()
    purge: tuple[str, ...] = ()  # also sets `experimental`, which these methods need


def policy_text(targets: Sequence[PolicyTarget], *, writer: str = "make demo") -> str:
    return f"# Written by `{writer}`. Do not edit.\n" + "".join(map(_table, targets))


def _table(target: PolicyTarget) -> str:
    lines = ["[[target]]", f"id = {_text(target.id)}", f"kind = {_text(target.kind)}", f"path = {_text(target.path)}"]
    if target.kind == "block":
        lines.append(f"stable_id = {_text(target.stable_id)}")
        lines += [f"serial = {_text(target.serial)}"] if target.serial else []
        if target.purge:
            lines += [f"purge = [{', '.join(map(_text, target.purge))}]", "experimental = true"]
        lines += [f"destroy = {str(target.destroy).lower()}", f"settings = [{', '.join(map(_text, target.settings))}]"]
    return "\n" + "\n".join(lines) + "\n"


def _text(value: str) -> str:
    """A TOML basic string: every JSON escape is valid in TOML."""
    return json.dumps(value, ensure_ascii=True)
