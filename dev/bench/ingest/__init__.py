"""Benchmarks of the ingest path, from a report to its commit.

posts     report posts per second of one gunicorn process ÷ a bare Django view that inserts and commits the row
hosts     many hosts, each with a sample per second, against the whole stack
overload  more hosts than the server can hear every second
resend    finished trials that are resent after an outage
memory    the worker's memory during a long trial
"""
