"""The Django project."""

import os

from webapp.celery import app as celery_app

__all__ = ["celery_app"]

# NumPy reads it when it is imported. With more threads, OpenBLAS waits actively for small matrices: on a busy server, a
# search of 960 combinations took 17 s of CPU time instead of 0.7 s.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
