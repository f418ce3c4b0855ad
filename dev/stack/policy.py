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
    destroy_signatures: tuple[str, ...] = ()
    settings: tuple[str, ...] = ()
    purge: tuple[str, ...] = ()  # also sets `experimental`, which these methods need


def policy_text(targets: Sequence[PolicyTarget], *, writer: str = "make demo") -> str:
    return f"# Written by `{writer}`. Do not edit.\n" + "".join(map(_table, targets))


def _table(target: PolicyTarget) -> str:
    lines = ["[[target]]", f"id = {_text(target.id)}", f"kind = {_text(target.kind)}", f"path = {_text(target.path)}"]
    lines += [f"stable_id = {_text(target.stable_id)}"] if target.stable_id else []
    lines += [f"serial = {_text(target.serial)}"] if target.serial else []
    if target.purge:
        lines += [f"purge = {_list(target.purge)}", "experimental = true"]
    lines += ["destroy = true"] if target.destroy else []
    lines += [f"destroy_signatures = {_list(target.destroy_signatures)}"] if target.destroy_signatures else []
    lines += [f"settings = {_list(target.settings)}"] if target.settings else []
    return "\n" + "\n".join(lines) + "\n"


def _list(texts: Sequence[str]) -> str:
    return f"[{', '.join(map(_text, texts))}]"


def _text(value: str) -> str:
    """A TOML basic string: every JSON escape is valid in TOML."""
    return json.dumps(value, ensure_ascii=True)
