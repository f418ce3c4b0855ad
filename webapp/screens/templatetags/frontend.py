"""`{% entry "run" %}`: the script and style elements of one entry of the front end's build."""

import functools
import json
from pathlib import Path
from typing import Any

import msgspec
from django import template
from django.conf import settings
from django.templatetags.static import static
from django.utils.safestring import SafeString

register = template.Library()

_ESCAPES = {ord(sign): f"\\u{ord(sign):04X}" for sign in "<>&"}

NOT_BUILT = (
    "The front end is not built, so this page has no style and no charts. Run `.ci/setup` and restart the server."
)


@register.inclusion_tag("screens/tags/payload_script.html")
def payload_script(payload: msgspec.Struct, element_id: str) -> dict[str, str]:
    """A struct as JSON for `readJson`; faster than `json_script` for the large payload of a comparison."""
    text = msgspec.json.encode(payload).decode().translate(_ESCAPES)
    return {"element_id": element_id, "json": SafeString(text)}


class UnknownEntry(LookupError):
    """The build has no such entry: it is older than the page that asks for it."""


def _read_manifest() -> dict[str, Any] | None:
    """Vite's manifest, or None before the first build."""
    path = Path(settings.FRONTEND_BUILD) / "manifest.json"
    if not path.is_file():
        return None
    manifest: dict[str, Any] = json.loads(path.read_text())
    return manifest


_cached_manifest = functools.cache(_read_manifest)


def _manifest() -> dict[str, Any] | None:
    return _read_manifest() if settings.DEBUG else _cached_manifest()


def _chunk(manifest: dict[str, Any], name: str) -> dict[str, Any]:
    chunk: dict[str, Any] | None = manifest.get(f"src/entries/{name}.ts")
    if chunk is None:
        raise UnknownEntry(f"The front end's build has no entry {name!r}. Build it again: `.ci/setup`.")
    return chunk


def _all_of(manifest: dict[str, Any], chunk: dict[str, Any], key: str) -> list[str]:
    """Values of `key` in the chunk and in everything it imports, each once, imports first."""
    values_of_chunks: list[str] = []
    for name in chunk.get("imports", []):
        values_of_chunks += _all_of(manifest, manifest[name], key)
    values = chunk.get(key, [])
    values_of_chunks += [values] if isinstance(values, str) else values
    return list(dict.fromkeys(values_of_chunks))


@register.inclusion_tag("screens/tags/entry.html")
def entry(name: str) -> dict[str, Any]:
    """The entry's style sheets, preloads of the modules it imports, and the entry itself as a module."""
    manifest = _manifest()
    if manifest is None:
        return {}
    chunk = _chunk(manifest, name)
    return {
        "sheets": [static(path) for path in _all_of(manifest, chunk, "css")],
        "modules": [static(path) for path in _all_of(manifest, chunk, "file") if path != chunk["file"]],
        "script": static(chunk["file"]),
    }


@register.inclusion_tag("screens/tags/blocking_entry.html")
def blocking_entry(name: str) -> dict[str, str]:
    """An entry that runs before the browser paints the page. It must not import anything."""
    manifest = _manifest()
    return {} if manifest is None else {"script": static(_chunk(manifest, name)["file"])}


@register.simple_tag
def font() -> str:
    """The address of the font of Latin text, which pages load before they are painted; "" before the first build."""
    files = (_manifest() or {}).get("src/entries/base.ts", {}).get("assets", [])
    return next((static(path) for path in files if "inter-latin-wght-normal" in path), "")


@register.simple_tag
def documentation() -> str:
    """The address of the documentation if it was built before the server started; else ""."""
    return "/docs/" if settings.WHITENOISE_ROOT else ""


@register.simple_tag
def frontend_problem() -> str:
    """How to build the front end if it is not built; else ""."""
    return NOT_BUILT if _manifest() is None else ""
