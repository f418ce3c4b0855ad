"""Structs become TypeScript that refuses what the server does not write; scripts fail tsc if only Python is changed."""

import json
import os
import subprocess
from collections.abc import Mapping, Sequence
from enum import IntEnum, StrEnum
from pathlib import Path
from typing import Any, Literal

import msgspec
import pytest

from dev import node
from dev.payload_types import Kind, payload_files, typescript, write
from webapp.screens import urls  # noqa: F401 - imports all pages, and so all structs that they send
from webapp.screens.payloads import Payload

Unit = Literal["s", "B"]


class Colour(StrEnum):
    RED = "red"
    BLUE = "blue"


class Inner(msgspec.Struct):
    values: tuple[tuple[float | None, ...], ...]
    colour: Colour
    unit: Unit


class Outer(msgspec.Struct):
    count: int
    is_new: bool
    inner: Inner | None
    texts: list[str] = msgspec.field(name="words")
    state: Literal["on", "off"] = "on"


class WithTag(msgspec.Struct, tag="x"):
    pass


class WithDefaults(msgspec.Struct, omit_defaults=True):
    count: int = 0


class AsList(msgspec.Struct, array_like=True):
    count: int


class Level(IntEnum):
    LOW = 1


def test_a_struct_becomes_a_check_and_its_type() -> None:
    head = '// Written by dev/payload_types.py.\nimport * as s from "../../frontend/src/lib/schema";'
    texts = typescript({"parts": (("Unit", Unit), Inner), "whole": (Outer,)})
    assert (
        texts["parts"]
        == f"""{head}

export const unit = s.oneOf("B", "s");
export type Unit = s.Checked<typeof unit>;

export const colour = s.oneOf("red", "blue");
export type Colour = s.Checked<typeof colour>;

export const inner = s.struct({{
  values: s.list(s.list(s.nullable(s.number))),
  colour: colour,
  unit: unit,
}});
export type Inner = s.Checked<typeof inner>;
"""
    )
    assert (
        texts["whole"]
        == f"""{head}
import {{ inner }} from "./parts";

export const outer = s.struct({{
  count: s.number,
  is_new: s.boolean,
  inner: s.nullable(inner),
  words: s.list(s.string),
  state: s.oneOf("off", "on"),
}});
export type Outer = s.Checked<typeof outer>;
"""
    )


@pytest.mark.parametrize(
    "kinds",
    [
        (msgspec.defstruct("A", [("values", dict[str, int])]),),
        (msgspec.defstruct("A", [("value", int | str)]),),
        (msgspec.defstruct("A", [("pair", tuple[int, str])]),),
        (msgspec.defstruct("A", [("value", Any)]),),
        (msgspec.defstruct("A", [("level", Level)]),),
        (msgspec.defstruct("A", [("number", Literal[1, 2])]),),
        (("A", str),),
        (WithTag,),
        (WithDefaults,),
        (AsList,),
        (msgspec.defstruct("A", [("count", int)]), msgspec.defstruct("A", [("other", int)])),
    ],
)
def test_it_refuses_what_has_no_check(kinds: Sequence[Kind]) -> None:
    with pytest.raises(TypeError):
        typescript({"file": kinds})


def test_every_struct_that_pages_send_has_a_check() -> None:
    written = "".join(typescript(payload_files()).values())
    missing = [kind.__name__ for kind in _subclasses(Payload) if f"export type {kind.__name__} = " not in written]
    assert missing == []


def _subclasses(kind: type) -> list[type]:
    children: list[type] = kind.__subclasses__()
    return [each for child in children for each in (child, *_subclasses(child))]


def test_it_leaves_exactly_the_files_and_does_not_touch_equal_ones(tmp_path: Path) -> None:
    write({"old": (Colour,), "same": (Inner,)}, tmp_path)
    os.utime(tmp_path / "same.ts", (1, 1))
    write({"new": (Colour,), "same": (("Unit", Unit),)}, tmp_path)
    assert {path.name for path in tmp_path.iterdir()} == {"new.ts", "same.ts"}
    assert (tmp_path / "same.ts").stat().st_mtime > 1
    os.utime(tmp_path / "same.ts", (1, 1))
    write({"new": (Colour,), "same": (("Unit", Unit),)}, tmp_path)
    assert (tmp_path / "same.ts").stat().st_mtime == 1


def test_a_script_fails_tsc_if_a_field_is_renamed_in_python_only(tmp_path: Path) -> None:
    files = payload_files()
    assert _tsc(tmp_path / "as-is", files, "marks") == ""
    renamed = msgspec.defstruct("Marks", [("number", int)])
    assert "Property 'count' does not exist" in _tsc(tmp_path / "renamed", {**files, "marks": (renamed,)}, "marks")


def _tsc(folder: Path, files: Mapping[str, Sequence[Kind]], script: str) -> str:
    """The output of tsc for a script of `frontend/src/features` with the types of these files."""
    write(files, folder / ".build/payloads")
    (folder / "frontend").symlink_to(node.FRONTEND)
    options = {"paths": {"#payloads/*": [str(folder / ".build/payloads/*")]}, "types": []}
    configuration = {
        "extends": str(node.FRONTEND / "tsconfig.json"), "compilerOptions": options,
        "files": [str(node.FRONTEND / f"src/features/{script}.ts")], "include": [],
    }  # fmt: skip
    (folder / "tsconfig.json").write_text(json.dumps(configuration))
    argv = node.command("typescript/bin/tsc", "--project", str(folder))
    return subprocess.run(argv, capture_output=True, text=True, check=False).stdout
