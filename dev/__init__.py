"""A private stack on this machine: PostgreSQL, Redis, web tier, periodic tasks and one storage worker.

Used by `make demo`, `make test` and `make bench`. Everything it starts lives in a state directory of
its own, listens on loopback or a Unix socket only, and is ended exactly: no system service is touched.
Apart from `demo`, nothing here knows Django.
"""
