"""The demo's policy file is one that the worker accepts as it stands."""

from pathlib import Path

from dev.stack.policy import PolicyTarget, policy_text
from worker import policy
from worker.settings import SETTING_NAMES


def test_it_is_read_by_the_worker(tmp_path: Path) -> None:
    targets = (
        PolicyTarget(id="scratch", kind="directory", path=f'{tmp_path}/with "quotes"'),
        PolicyTarget("loop0", "block", "/dev/loop0", "loop:/x.img", destroy=True, settings=("scheduler",)),
    )
    file = tmp_path / "policy.toml"
    file.write_text(policy_text(targets))
    file.chmod(0o600)
    directory, block = policy.load(file, SETTING_NAMES).targets
    assert directory.path == f'{tmp_path}/with "quotes"'
    assert not directory.destroy
    assert (block.stable_id, block.destroy, block.settings) == ("loop:/x.img", True, ("scheduler",))
