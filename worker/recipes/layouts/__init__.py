"""Layouts: parse lines, find problems, compute alignment, and list the commands. Pure functions."""
