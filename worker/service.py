"""`sweetspot-worker start`: create the parts of the worker and start and stop them in order."""

import logging
import os
import signal
import sqlite3
import time
from types import FrameType

from celery.signals import worker_shutting_down

from worker import __version__
from worker.contract.base import examine_types
from worker.contract.greetings import SESSION_OTHER
from worker.engines.complete_files import CompleteFiles
from worker.journal import Journal, JournalError
from worker.kernel.files import STATE_DISK_FULL, is_full_disk
from worker.layouts.building import built_on
from worker.link.celery_app import consume, make_app
from worker.link.client import Client, Refused, Unreachable
from worker.link.enrolment import Enrolment, EnrolmentStore, Paths, load_enrolment, sole_use
from worker.link.registration import Registration
from worker.link.reporter import Reporter
from worker.link.session import begin_session, encode_report
from worker.link.spool import Spool, SpoolFull
from worker.log import Shipping, hide_access, ship
from worker.orders.context import HostContext
from worker.orders.executor import IDLE_RESTORE_S, Executor

log = logging.getLogger(__name__)

IDLE_VARIABLE = "SWEETSPOT_WORKER_IDLE_RESTORE_S"
CONSUME_AGAIN_S = 1.0
TRIAL_STOP_S = 20.0
FLUSH_S = 5.0
SESSION_POLL_S = 5.0  # how often a second worker asks whether the first one has gone
SPACE_POLL_S = 2.0  # how often a worker that cannot start looks for space


class Service:
    """The long-lived parts of a worker process."""

    def __init__(self, paths: Paths, enrolment: Enrolment) -> None:
        self._enrolment = enrolment
        self._client = Client(enrolment.server, enrolment.host_token, ca_file=enrolment.ca_file)
        self._client.speak(enrolment.contract)
        self._journal = Journal(paths.journal)  # before the spool, because it frees the reserved space on a full disk
        self._spool = Spool(paths.spool)
        session = begin_session(paths.state)
        self._reporter = Reporter(self._spool, self._client, shipping=_shipped_log(enrolment), session=session)
        self._store = EnrolmentStore(paths, enrolment)
        self._registration = Registration(
            paths,
            self._store,
            self._client,
            unfinished=self._unfinished,
            built_on=lambda: built_on(self._journal),
            session=session,
        )
        self._registration.token_due = self._reporter.token_due
        context = HostContext(paths.state, paths.policy, self._journal, CompleteFiles(paths.files))
        idle_s = float(os.environ.get(IDLE_VARIABLE, IDLE_RESTORE_S))
        self._executor = Executor(
            enrolment.host,
            context,
            self._reporter,
            self._registration,
            ask_start=self._client.common_start,
            on_crash=self._on_crash,
            idle_restore_s=idle_s,
        )
        self._stopping = False
        self._crashed = False

    def run(self) -> int:
        """Work until SIGTERM or SIGINT. Returns the exit status: 1 after a fault of the worker."""
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, self._on_signal)
        worker_shutting_down.connect(self._on_shutdown, weak=False)
        try:
            self._start()
            while not self._stopping:
                self._consume()
        except SystemExit:
            log.debug("Ended by a signal while Celery was not running.")
        finally:
            self._stop()
        return 1 if self._crashed else 0

    def _unfinished(self) -> tuple[str, ...]:
        """Attempts whose end the server has not confirmed."""
        under_way = (entry.attempt for entry in self._journal.open_attempts())
        return tuple(dict.fromkeys([*under_way, *self._spool.unconfirmed()]))

    def _start(self) -> None:
        examine_types()
        self._await_session()
        self._executor.recover()
        self._reporter.start()
        self._registration.register_if_idle()
        self._registration.start()
        self._executor.start()
        log.info("Worker %s of host %s is ready.", __version__, self._enrolment.host_name)

    def _await_session(self) -> None:
        """A second worker with this identity waits, and restores nothing of its copy of the journal.

        Without an answer the worker goes on, because it may have to restore settings.
        """
        while not self._stopping and self._is_second():
            self._registration.register_if_due()  # tells the server on which machine it runs
            time.sleep(SESSION_POLL_S)

    def _is_second(self) -> bool:
        session = self._registration.session
        try:
            self._client.report(encode_report((), (), session=session, version=self._client.contract))
        except Unreachable:
            return False
        except Refused as error:
            if error.code == SESSION_OTHER:
                log.error("%s", error)
                return True
        else:
            session.accepted()
        return False

    def _consume(self) -> None:
        """Run Celery until it ends; an invalid message ends it. The order thread keeps running.

        A second worker with this identity takes no orders from the queue.
        """
        if self._registration.is_second:
            time.sleep(CONSUME_AGAIN_S)
            return
        code = consume(make_app(lambda: self._store.enrolment, self._executor.take), self._enrolment)
        if not self._stopping:
            log.error("Celery ended with %d: the queue held an invalid message, or is broken. Restarting Celery.", code)
            time.sleep(CONSUME_AGAIN_S)

    def _on_shutdown(self, **_: object) -> None:
        self._stopping = True
        self._executor.begin_stop()

    def _on_crash(self) -> None:
        self._crashed = True
        os.kill(os.getpid(), signal.SIGTERM)

    def _on_signal(self, _number: int, _frame: FrameType | None) -> None:
        """End the process through `finally` if Celery is not running."""
        self._on_shutdown()
        raise SystemExit(0)

    def _stop(self) -> None:
        log.info("Stopping.")
        self._registration.stop()
        if not self._executor.stop(limit_s=TRIAL_STOP_S):
            log.error("The current order did not end within %.0f s; the next start cleans up.", TRIAL_STOP_S)
        self._reporter.stop(limit_s=FLUSH_S)
        self._client.close()
        log.info("Stopped; %d batches are left for the next start.", self._spool.backlog()[0])


def _shipped_log(enrolment: Enrolment) -> Shipping:
    """Also send the log to the server, without this host's secrets."""
    hide_access(host_token=enrolment.host_token, broker_url=enrolment.broker_url)
    return ship()


def serve(paths: Paths) -> int:
    enrolment = load_enrolment(paths)
    with sole_use(paths.state):
        _await_space(paths, enrolment)
        return Service(paths, enrolment).run()


def _await_space(paths: Paths, enrolment: Enrolment) -> None:
    """Wait until the databases can be opened, and tell the server meanwhile that the disk is full.

    Raises JournalError for other problems.
    """
    registration: Registration | None = None
    while (problem := _full_disk(paths)) is not None:
        if registration is None:
            log.critical("The worker cannot start before its state disk has space: %s", problem)
            client = Client(enrolment.server, enrolment.host_token, ca_file=enrolment.ca_file)
            client.speak(enrolment.contract)
            registration = Registration(paths, EnrolmentStore(paths, enrolment), client, unfinished=tuple)
        registration.register_if_due()
        time.sleep(SPACE_POLL_S)


def _full_disk(paths: Paths) -> Exception | None:
    """The error if the databases cannot be opened because the disk is full, even in the reserved space."""
    try:
        Journal(paths.journal).close()  # first, because it frees the reserved space
        Spool(paths.spool).close()
        CompleteFiles(paths.files).close()
    except (JournalError, SpoolFull, sqlite3.OperationalError) as error:
        full = getattr(error, "code", "") in (STATE_DISK_FULL, SpoolFull.code) or is_full_disk(error)
        if not full:
            raise
        return error
    return None
