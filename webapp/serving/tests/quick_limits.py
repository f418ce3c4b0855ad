"""gunicorn's settings for the tests: the server's own, with shorter times."""

from webapp.serving import *  # noqa: F403 - gunicorn reads the names
from webapp.serving import transfers

workers = 1
transfers.GRACE_S = 3.0
