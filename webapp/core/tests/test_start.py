"""No process of the server starts with unsafe settings."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from celery.signals import worker_init
from django.core.exceptions import ImproperlyConfigured
from pytest_django import Settings

import webapp
from webapp.core.checks import require_safe_settings

CELERY = (sys.executable, "-m", "celery", "--app", "webapp.celery")
PROCESSES = {
    "web": (sys.executable, "-m", "gunicorn", "webapp.wsgi", "--bind", "127.0.0.1:0", "--workers", "1"),
    "tasks": (*CELERY, "worker", "--queues", "server", "--pool", "solo"),
    "beat": (*CELERY, "beat", "--pidfile=", "--schedule=/nonexistent/beat"),
}
PLAIN = "lab.example: passwords and tokens would cross the network unencrypted"
UNSAFE: dict[str, tuple[dict[str, object], str]] = {
    "short key": ({"SECRET_KEY": "short"}, "SWEETSPOT_SECRET_KEY is too short"),
    "any name": ({"ALLOWED_HOSTS": ["*"]}, "SWEETSPOT_ALLOWED_HOSTS contains *"),
    "plain HTTP": ({"PUBLIC_URL": "http://lab.example", "HTTPS": False}, PLAIN),
    "plain name": ({"ALLOWED_HOSTS": ["localhost", "lab.example"]}, PLAIN),
    "plain cookies": ({"PUBLIC_URL": "https://lab.example", "HTTPS": False}, PLAIN),
    "header of anybody": ({"PROXY_USER_HEADER": "Remote-User"}, "The log-in by a proxy's header is incomplete"),
}
ALL_AT_ONCE = {
    "SWEETSPOT_SECRET_KEY": "short",
    "SWEETSPOT_ALLOWED_HOSTS": "*",
    "SWEETSPOT_PUBLIC_URL": "https://lab.example",
    "SWEETSPOT_HTTPS": "0",
    "SWEETSPOT_PROXY_USER_HEADER": "Remote-User",
}


@pytest.mark.parametrize("process", PROCESSES)
def test_it_refuses_to_start_with_unsafe_settings(process: str) -> None:
    done = subprocess.run(
        PROCESSES[process], cwd=Path(webapp.__file__).parents[1], env={**os.environ, **ALL_AT_ONCE},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert [words for _, words in UNSAFE.values() if words not in done.stderr] == []


@pytest.mark.parametrize("problem", UNSAFE)
def test_one_unsafe_setting_is_enough(settings: Settings, problem: str) -> None:
    changes, words = UNSAFE[problem]
    require_safe_settings()
    for name, value in changes.items():
        setattr(settings, name, value)
    with pytest.raises(ImproperlyConfigured, match=re.escape(words)):
        require_safe_settings()


def test_the_web_tier_examines_all_types_before_its_threads_start() -> None:
    words = "import worker.contract.base as it; it.examine_types = lambda: print('examined'); import webapp.wsgi"
    done = subprocess.run(
        (sys.executable, "-c", words), cwd=Path(webapp.__file__).parents[1], capture_output=True, text=True, check=True
    )
    assert done.stdout == "examined\n"


def test_the_servers_celery_worker_examines_all_types_before_its_threads_start(monkeypatch: pytest.MonkeyPatch) -> None:
    examined: list[bool] = []
    monkeypatch.setattr("worker.contract.base.examine_types", lambda: examined.append(True))
    worker_init.send(sender=None)
    assert examined == [True]
