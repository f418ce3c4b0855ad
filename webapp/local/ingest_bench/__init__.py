"""Benchmarks of the ingest path: python -m webapp.local.ingest_bench (hosts|posts|overload|resend|memory).

hosts    one process plays many hosts, a batch a second each, against the whole stack
posts    report posts per second of one gunicorn process ÷ a bare Django view that inserts and commits the row
overload more hosts than the server can serve every second, which report as often as its replies ask
resend   finished trials, resent after an outage, until all are committed
memory   a worker's memory while fio's output of many hours goes through it
"""
