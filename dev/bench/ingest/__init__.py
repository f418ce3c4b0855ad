"""How much the way from a report to a commit carries: python -m webapp.local.ingest_bench (hosts|posts|bulk|memory).

hosts    one process plays many hosts, a batch a second each, against the whole stack
posts    report posts per second of one gunicorn process ÷ a bare Django view that inserts and commits the row
bulk     results and samples of finished trials, resent after an outage ÷ binary COPY of the same rows
memory   a worker's memory while fio's output of many hours goes through it
"""
