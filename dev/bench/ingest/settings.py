"""The server's settings with one address more: the bare view that posts are compared with."""

from webapp.settings.base import *  # noqa: F403

ROOT_URLCONF = "webapp.local.ingest_bench.urls"
