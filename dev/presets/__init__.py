"""Runs every built-in plan at small scale on this machine."""
