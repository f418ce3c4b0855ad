"""What this host can run, cached on disk, because trying the engines takes seconds."""

import logging
import os
from pathlib import Path

import msgspec

from worker import __version__, engines, settings
from worker.contract.inventory import Capabilities
from worker.layouts.offered import offered
from worker.whole_file import write_whole

log = logging.getLogger(__name__)


class _Known(msgspec.Struct, frozen=True):
    """Cached capabilities. Another engine version, boot, user or worker version invalidates them."""

    key: str
    found: Capabilities


def known_capabilities(path: Path, *, refresh: bool = False) -> Capabilities:
    """Read the file at `path` if it is valid, else try every engine. `refresh` ignores the file."""
    key = _circumstances()
    known = None if refresh else _read(path)
    if known is not None and known.key == key:
        return msgspec.structs.replace(known.found, settings=_settings_here(), layouts=offered())
    found = msgspec.structs.replace(engines.capabilities(settings=_settings_here()), layouts=offered())
    try:
        write_whole(path, msgspec.json.encode(_Known(key, found)))
    except OSError as error:
        log.warning("The engines will be tried again, because the result cannot be saved: %s", error)
    return found


def _settings_here() -> tuple[str, ...]:
    """All settings of devices and controllers, and the host settings that this host has."""
    registered = settings.REGISTRY.values()
    return tuple(s.name for s in registered if s.scope is not settings.SettingScope.HOST or s.discover(""))


def _read(path: Path) -> _Known | None:
    try:
        return msgspec.json.decode(path.read_bytes(), type=_Known)
    except (OSError, msgspec.DecodeError):
        return None


def _circumstances() -> str:
    installed = " ".join(engine.installation() for engine in engines.ENGINES.values())
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    return f"{installed} {boot} {os.geteuid()} {__version__}"
