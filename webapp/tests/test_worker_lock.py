"""The list of the worker's packages is that of the tested versions."""

import re

from dev import worker_lock


def test_every_package_of_the_worker_is_listed_with_the_tested_version() -> None:
    listed = re.findall(r"^(\S+==\S+) \\\n    --hash=sha256:[0-9a-f]{64}", worker_lock.LOCK.read_text(), re.MULTILINE)
    assert sorted(listed) == sorted(worker_lock.pinned())
    assert {pin.partition("==")[0] for pin in listed} == worker_lock.required_names()
