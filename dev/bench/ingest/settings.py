"""The server's settings plus the URL of the bare view."""

from webapp.settings.base import *  # noqa: F403

ROOT_URLCONF = "dev.bench.ingest.urls"
