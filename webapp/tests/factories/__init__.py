"""Real rows for tests, benchmarks and samples, as plain functions; every argument has a default that works.

A name that a page or a message shows can be given; without it, each row gets one of its own.
"""
