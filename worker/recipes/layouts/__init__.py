"""Layouts: parse lines, find problems, compute alignment, and list the commands. Pure functions."""

from worker.recipes.layouts.commands import (
    Drive,
    Names,
    Step,
    array_bays,
    array_paths,
    build_steps,
    list_signatures,
    members,
    part_path,
    top_path,
)
from worker.recipes.layouts.geometry import Alignment, Verdict, alignment, capacity_share, whole_width_bytes
from worker.recipes.layouts.problems import array_problem, needed, problems
from worker.recipes.layouts.removal import Part, Removal, tear_down_steps
from worker.recipes.layouts.text import LayoutError, parse, sweep, sweep_size, write

__all__ = [
    "Alignment",
    "Drive",
    "LayoutError",
    "Names",
    "Part",
    "Removal",
    "Step",
    "Verdict",
    "alignment",
    "array_bays",
    "array_paths",
    "array_problem",
    "build_steps",
    "capacity_share",
    "list_signatures",
    "members",
    "needed",
    "parse",
    "part_path",
    "problems",
    "sweep",
    "sweep_size",
    "tear_down_steps",
    "top_path",
    "whole_width_bytes",
    "write",
]
