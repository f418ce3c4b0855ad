"""Facts of a configuration without the names of its devices. The worker names the facts (`inventory.facts`)."""

import re
from collections.abc import Mapping

Facts = Mapping[str, str]
CONTROLLER_FACT = "device.controller.model"  # without the device's name, as worker.inventory.facts calls it

_BELOW = re.compile(r"device\.[^.]+\.(below)\..+")
_OF_A_DEVICE = re.compile(r"device\.[^.]+\.(.+)")
_OF_A_STREAM = re.compile(r"stream\.[0-9]+\.(.+)")


def without_device_names(facts: Facts) -> Facts:
    """Facts without device names and stream numbers, so that facts of different devices can be compared.

    `device.nvme0n1.scheduler` becomes `device.scheduler`. If all devices or streams have the same value, it is listed
    once, otherwise all values are listed.
    """
    values: dict[str, list[str]] = {}
    for name, text in sorted(facts.items()):
        values.setdefault(_plain_name(name), []).append(text)
    return {name: texts[0] if len({*texts}) == 1 else ", ".join(texts) for name, texts in values.items()}


def _plain_name(name: str) -> str:
    if device := _BELOW.fullmatch(name) or _OF_A_DEVICE.fullmatch(name):
        return f"device.{device[1]}"
    stream = _OF_A_STREAM.fullmatch(name)
    return stream[1] if stream else name
