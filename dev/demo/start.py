"""`make demo`: starts a complete Sweetspot on this machine and runs its first plan, unless it has data."""

import io
import os
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import django
from django.core.management import CommandError, call_command

from dev.console import ToolError, print_error, say, step
from dev.stack import lifecycle, loop_device, processes, services
from dev.stack.loop_device import MIB
from dev.stack.policy import PolicyTarget, policy_text
from dev.stack.state import REPOSITORY, State
from webapp.hosts import wheelhouse

HOST = "this-machine"
PLAN = "first-look"
ADMIN = "admin"
LOOP_DEVICE_BYTES = 512 * MIB
# Whether the device uses direct I/O on its image. Without it, this machine's memory answers reads: the tutorial
# (docs/tutorial/two-drives.md) finds that out. That device is not part of the first run.
LOOP_DEVICES = {"loop0": True, "loop1": False}
FIRST_TARGETS = ("scratch", "loop0")
Prepare = Callable[[State], tuple[PolicyTarget, ...]]
BLOCK_SETTINGS = (
    "scheduler",
    "read_ahead_kb",
    "nr_requests",
    "rq_affinity",
    "nomerges",
    "wbt_lat_usec",
    "max_sectors_kb",
)


def main(state: State, *, smallest: bool = False) -> int:
    """Start all services, run the plan First look and print the address. Raises ToolError.

    `smallest`: one point of each part of the plan, for a second each, and no packages for other hosts.
    """
    started_at = time.monotonic()
    say("Sweetspot on this machine:")
    targets = bring_up(state)
    say(f"Ready after {time.monotonic() - started_at:.0f} s: {services.public_url(state)}")
    if smallest or not has_data():
        status = _run_plan(state, targets, _smallest_plan() if smallest else PLAN)
    else:
        status = 0
        say("There are runs with results already, so nothing is measured. Start any plan in the browser.")
    if not smallest:
        _build_wheelhouse()
    _print_summary(state)
    return status


def bring_up(state: State, prepare: Prepare | None = None) -> tuple[PolicyTarget, ...]:
    """Start all services, enrol the worker and set up Django in this process; the targets. Raises ToolError.

    `prepare` creates the targets and writes the worker's policy; by default a directory and two loop devices.
    """
    state.prepare()
    with ThreadPoolExecutor(1) as beside:
        # writing the loop device's image takes as long as the rest
        preparing = beside.submit(prepare or _prepare_targets, state)
        bring_up_server(state)
        targets = preparing.result()
    _enrol(state)
    lifecycle.start_worker(state)
    return targets


def bring_up_server(state: State) -> None:
    """Start everything but the worker and set up Django in this process. Raises ToolError."""
    lifecycle.start_stores(state)
    listener = services.reserve_address(state)
    _prepare_django(state)
    with step("database tables, built-in plans and references"):
        _prepare_database(state)
    lifecycle.start_server(state, listener)


def _prepare_django(state: State) -> None:
    """Set up Django in this process with the environment of the services."""
    os.environ.update(services.environment(state))
    django.setup()


def _prepare_database(state: State) -> None:
    try:
        call_command("migrate", verbosity=0)
    except CommandError as error:
        raise ToolError(f"{error} To delete the demo's data in {state.root}, run `make clean`.") from error
    call_command("setup", stdout=io.StringIO())
    call_command("load_references", stdout=io.StringIO())
    if not state.read("login"):
        state.write("login", _output("create_admin", ADMIN, reset=True))


def _output(command: str, *arguments: str, **options: object) -> str:
    output = io.StringIO()
    call_command(command, *arguments, stdout=output, **options)
    return output.getvalue()


def _prepare_targets(state: State) -> tuple[PolicyTarget, ...]:
    """Write the worker's policy: a scratch directory and, if available, loop devices."""
    scratch = state.root / "scratch"
    scratch.mkdir(mode=0o700, exist_ok=True)
    targets = (PolicyTarget(id="scratch", kind="directory", path=str(scratch)), *_loop_targets(state))
    state.write("policy.toml", policy_text(targets))
    return targets


def _loop_targets(state: State) -> tuple[PolicyTarget, ...]:
    if os.getuid() != 0:
        say("  – no loop devices, because they require root: only the scratch directory is measured")
        return ()
    try:
        with step("attaching two loop devices over files of 512 MiB"):
            return tuple(_loop_target(state, name) for name in LOOP_DEVICES)
    except ToolError as error:
        say(f"  – no loop devices ({error}): only the scratch directory is measured")
        return ()


def _loop_target(state: State, name: str) -> PolicyTarget:
    device = loop_device.attach(state.root / f"{name}.img", LOOP_DEVICE_BYTES, direct_io=LOOP_DEVICES[name])
    return PolicyTarget(
        id=name,
        kind="block",
        path=device,
        stable_id=loop_device.stable_id(device),
        destroy=True,
        settings=BLOCK_SETTINGS,
    )


def _enrol(state: State) -> None:
    """Enrol the worker with a one-time token, unless it is enrolled at these addresses."""
    addresses = f"{services.public_url(state)} {os.environ['SWEETSPOT_REDIS_URL']}"
    if (services.worker_state(state) / "worker.json").exists() and state.read("enrolled_at") == addresses:
        return
    with step("enrolling the storage worker"):
        processes.stop(state, services.WORKER, limit_s=services.WORKER_STOP_LIMIT_S)
        token = _output("enrolment_token", host=HOST).strip()
        options = ("--server", services.public_url(state), "--name", HOST, "--replace", "--json", "--token", "-")
        told = processes.run(
            services.worker_argv(state, "enrol", *options),
            environment=services.environment(state),
            folder=REPOSITORY,
            stdin_text=token + "\n",
        )
        state.write("host.json", told)
        state.write("enrolled_at", addresses)


def has_data() -> bool:
    """Whether a trial has results, or a run is still open: after an interruption, its worker goes on with it."""
    from webapp.runs.models import Run, Trial, TrialState
    from webapp.runs.states import ENDED_RUN_STATES

    has_results = Trial.objects.filter(state=TrialState.DONE).exists()
    return has_results or Run.objects.exclude(state__in=ENDED_RUN_STATES).exists()


def _smallest_plan() -> str:
    """The name of a copy of the plan at the smallest scale."""
    from dev.presets.scaling import Scale, scaled
    from webapp.plans.document import read
    from webapp.plans.selectors import version_of
    from webapp.plans.services import create_plan

    return create_plan(document=scaled(read(version_of(PLAN).document), Scale(points=1)), by=None).slug


def _run_plan(state: State, targets: tuple[PolicyTarget, ...], plan: str) -> int:
    """Start the plan and show its progress until it is done; 0 if every trial is done."""
    host = str(state.read_facts("host.json")["name"])
    arguments = [plan, "--host", host, "--wait"]
    chosen = [target.id for target in targets if target.id in FIRST_TARGETS]
    for name in chosen:
        arguments += ["--target", name]
    say(f"Running the plan {plan} on {', '.join(chosen)}:")
    try:
        call_command("run_plan", *arguments)
    except CommandError as error:  # its message says what failed, or that the run continues after Ctrl-C
        print_error(str(error))
        return error.returncode
    return 0


def _build_wheelhouse() -> None:
    """The packages of workers on other hosts, if pip reaches an index."""
    if wheelhouse.built_wheelhouse():
        return
    try:
        with step("packages for workers on other hosts"):
            wheelhouse.build()
    except wheelhouse.NotBuilt:
        say("    pip reached no package index: other hosts will get the packages from their own index")


def _print_summary(state: State) -> None:
    say()
    say(f"{'Address:':<12} {services.public_url(state)}")
    for line in state.read("login").splitlines():
        name, _, value = line.partition(":")
        say(f"{name.capitalize() + ':':<12} {value.strip()}")
    say("The services keep running. make stop stops them, make demo starts them again, make clean removes the data.")
    missing = set(lifecycle.LABELS) - set(lifecycle.running(state))
    if missing:
        print_error(f"Stopped unexpectedly: {', '.join(sorted(missing))}; logs are in {state.logs}")
