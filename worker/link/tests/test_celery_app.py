from pathlib import Path

import msgspec
import pytest

from worker.contract.orders import ORDER_TASK
from worker.link.celery_app import make_app
from worker.link.enrolment import Enrolment

ENROLMENT = Enrolment(
    host="h1",
    host_name="store-1",
    server="http://127.0.0.1:1",
    host_token="token-of-the-test",
    broker_url="redis://127.0.0.1:1/0",
    public_keys={},
    contract=1,
)


def test_it_has_one_task_that_takes_text() -> None:
    taken: list[str] = []
    app = make_app(lambda: ENROLMENT, taken.append)
    # Where the server's tests run in the same process, its shared tasks are in every app.
    assert [name for name in app.tasks if not name.startswith(("celery.", "webapp."))] == [ORDER_TASK]
    app.tasks[ORDER_TASK]("an envelope")
    assert taken == ["an envelope"]


def test_it_consumes_this_hosts_queue_and_touches_no_other_key() -> None:
    app = make_app(lambda: ENROLMENT, print)
    assert list(app.amqp.queues) == ["host.h1"]
    options = app.conf.broker_transport_options
    assert options["priority_steps"] == [0]
    assert all(options[name].startswith("host.h1:") for name in options if name.startswith("unacked"))


def test_it_logs_in_with_the_password_of_the_moment() -> None:
    known = [msgspec.structs.replace(ENROLMENT, broker_url="redis://host.h1:first@127.0.0.1:1/0")]
    app = make_app(lambda: known[-1], print)
    connection = app.connection_for_read()
    known.append(msgspec.structs.replace(ENROLMENT, broker_url="redis://host.h1:second%40@127.0.0.1:1/0"))
    assert connection.credential_provider.get_credentials() == ("host.h1", "second@")


def test_it_listens_to_nobody_else() -> None:
    conf = make_app(lambda: ENROLMENT, print).conf
    assert list(conf.accept_content) == ["json"]
    assert not conf.worker_enable_remote_control
    assert conf.task_acks_late
    assert conf.broker_connection_max_retries is None


def test_it_reads_no_celeryconfig_of_the_working_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "celeryconfig.py").write_text("accept_content = ['pickle']\nraise SystemExit('was read')\n")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(str(tmp_path))
    assert list(make_app(lambda: ENROLMENT, print).conf.accept_content) == ["json"]
