"""From an order to the exact fio job text. Pure: imports only the contract, touches nothing.

The server's preview and the worker call the same `render`, so what is shown is what runs.
"""

from worker.recipes.job import Recipe, opening, render, render_prefill
from worker.recipes.names import RecipeError, path_problem
from worker.recipes.problems import workload_problems

__all__ = ["Recipe", "RecipeError", "opening", "path_problem", "render", "render_prefill", "workload_problems"]
