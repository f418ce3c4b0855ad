"""Benchmarks of the ingest path, from a report to its commit.

posts    report posts per second of one gunicorn process ÷ a bare Django view that inserts and commits the row
hosts    one process plays many hosts, each with a batch per second, against the whole stack
memory   the worker's memory while fio's output of many hours passes through it
"""
