"""Builds the documentation as a site: `docs/`, and pages generated from the code."""
