"""A second worker on this machine, for plans whose trials use several hosts at once. Import after django.setup()."""

from dev.console import step
from dev.presets.drives import SECOND, folder
from dev.stack import processes, services
from dev.stack.network import await_condition
from dev.stack.policy import PolicyTarget, policy_text
from dev.stack.state import REPOSITORY, State
from webapp.hosts.models import Target
from webapp.hosts.services import issue_enrolment_token

HOST = "second-host"
LIMIT_S = 60.0


def start(state: State) -> None:
    """Enrol it, start it and wait until it has registered its directory; `drives.remove` stops it. Raises ToolError."""
    with step("starting a second worker"):
        _write_policy(state)
        token = issue_enrolment_token(by=None, slug=HOST)
        enrol = _argv(state, "enrol", "--server", services.public_url(state), "--token", token)
        processes.run(enrol, environment=services.environment(state), folder=REPOSITORY)
        environment = services.environment(state)
        processes.start(state, processes.Command(SECOND, _argv(state, "start"), environment, REPOSITORY))
        ready = Target.objects.filter(slug=SECOND, in_policy=True, host__capabilities__engines__isnull=False)
        if not await_condition(ready.exists, limit_s=LIMIT_S):
            raise processes.failure(state, SECOND, f"did not register within {LIMIT_S:.0f} s")


def _write_policy(state: State) -> None:
    target = PolicyTarget(id=SECOND, kind="directory", path=str(folder(state, SECOND)))
    state.write("second.toml", policy_text([target]))


def _argv(state: State, *argv: str) -> tuple[str, ...]:
    paths = ("--state", str(state.root / SECOND), "--policy", str(state.root / "second.toml"))
    return (services.worker_argv(state)[0], "-m", "worker", *paths, *argv)
