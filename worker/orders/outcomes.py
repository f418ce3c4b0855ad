"""The last word about an attempt."""

import time

from worker.contract.items import Finished, Outcome


def finished(outcome: Outcome, code: str = "", message: str = "") -> Finished:
    return Finished(at=time.time(), outcome=outcome, code=code, message=clip(message, 60_000))


def clip(text: str, length: int) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
