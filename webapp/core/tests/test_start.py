"""No process of the server starts with settings that give it away."""

import os
import subprocess
import sys
from pathlib import Path

import pytest
from celery.signals import worker_init

import webapp

CELERY = (sys.executable, "-m", "celery", "--app", "webapp.celery")
PROCESSES = {
    "web": (sys.executable, "-m", "gunicorn", "webapp.wsgi", "--bind", "127.0.0.1:0", "--workers", "1"),
    "tasks": (*CELERY, "worker", "--queues", "server", "--pool", "solo"),
    "beat": (*CELERY, "beat", "--pidfile=", "--schedule=/nonexistent/beat"),
}
UNSAFE = {
    "short key": ({"SWEETSPOT_SECRET_KEY": "short"}, "SWEETSPOT_SECRET_KEY is too short"),
    "any name": ({"SWEETSPOT_ALLOWED_HOSTS": "*"}, "SWEETSPOT_ALLOWED_HOSTS contains *"),
    "plain HTTP": ({"SWEETSPOT_PUBLIC_URL": "http://lab.example"}, "Plain HTTP for lab.example"),
    "plain name": ({"SWEETSPOT_ALLOWED_HOSTS": "localhost,lab.example"}, "Plain HTTP for lab.example"),
    "plain cookies": (
        {"SWEETSPOT_PUBLIC_URL": "https://lab.example", "SWEETSPOT_HTTPS": "0"},
        "Plain HTTP for lab.example",
    ),
    "header of anybody": (
        {"SWEETSPOT_PROXY_USER_HEADER": "Remote-User"},
        "The log-in by a proxy's header is incomplete",
    ),
}


@pytest.mark.parametrize(
    ("process", "problem"), [*(("web", problem) for problem in UNSAFE), ("tasks", "any name"), ("beat", "any name")]
)
def test_it_refuses_to_start_with_settings_that_give_it_away(process: str, problem: str) -> None:
    changes, words = UNSAFE[problem]
    done = subprocess.run(
        PROCESSES[process], cwd=Path(webapp.__file__).parents[1], env={**os.environ, **changes},
        capture_output=True, text=True, timeout=60, check=False,
    )  # fmt: skip
    assert done.returncode != 0
    assert words in done.stderr


def test_the_web_tier_examines_all_types_before_its_threads_start() -> None:
    words = (
        "import worker.contract.thread_safety as it; it.examine_types = lambda: print('examined'); import webapp.wsgi"
    )
    done = subprocess.run(
        (sys.executable, "-c", words), cwd=Path(webapp.__file__).parents[1], capture_output=True, text=True, check=True
    )
    assert done.stdout == "examined\n"


def test_the_servers_celery_worker_examines_all_types_before_its_threads_start(monkeypatch: pytest.MonkeyPatch) -> None:
    examined: list[bool] = []
    monkeypatch.setattr("worker.contract.thread_safety.examine_types", lambda: examined.append(True))
    worker_init.send(sender=None)
    assert examined == [True]
