"""Figures that no honest host reports: the server refuses them with 400, or all pages about the host still open.

Every field of the messages of a host takes its smallest, its largest and an odd value, one field at a time.
"""

from collections.abc import Iterator
from typing import Any

import msgspec
import pytest
from django.test import Client
from msgspec import inspect
from msgspec.structs import replace

from webapp.core.models import Role
from webapp.runs.models import Attempt
from webapp.tests.access_table import PAGES, Who
from webapp.tests.addresses import pages
from webapp.tests.factories.hosts import a_host_with_token, storage1_scratch
from webapp.tests.factories.people import a_user
from webapp.tests.factories.plans import first_look
from webapp.tests.factories.reports import ACCEPTED, DONE, RESULT, STARTED, sample, say
from webapp.tests.factories.runs import end_attempt, first_look_run, start_trial
from worker.contract.base import encode
from worker.contract.greetings import Hello
from worker.contract.inventory import PcieLink, PciFunction
from worker.contract.items import Item, Sensor, SensorKind
from worker.contract.tests.examples import HELLO

pytestmark = [pytest.mark.slow, pytest.mark.django_db, pytest.mark.usefixtures("broker")]
Path = tuple[str | int, ...]
LARGEST = 3e38  # larger figures of a report are refused, see webapp/results/tests
# Likewise these fields, and with one of them everything else in the message.
REFUSED = (
    "at", "started_at", "began_at", "ended_at", "stream", "offset_ms", "length_ms", "runtime_ms", "exit_code",
    "samples",
)  # fmt: skip
ODD = "\u202e{{ x }}<script>%s'\";\\"


def values_of(kind: inspect.Type) -> list[object]:
    """Values at the limits of a type, and odd ones."""
    match kind:
        case inspect.StrType():
            least, most = kind.min_length or 0, kind.max_length or 1000
            return ["-" * least, "/" * max(1, least), (ODD * most)[:most], "7" * most]
        case inspect.IntType():
            return [-(2**63) if kind.ge is None else kind.ge, 0, 2**63 - 1 if kind.le is None else kind.le]
        case inspect.FloatType():
            return [-LARGEST if kind.ge is None else kind.ge, 0.0, 5e-324, LARGEST if kind.le is None else kind.le]
        case inspect.VarTupleType():
            return [[]]
        case inspect.DictType():
            return [{}]
        case inspect.UnionType():
            return [value for each in kind.types for value in values_of(each)]
        case inspect.BoolType():
            return [True, False]
        case _:
            return []


def changes(kind: inspect.Type, plain: Any, path: Path = ()) -> Iterator[tuple[Path, object]]:
    """Every single change of a message to a value at the limits of its field."""
    yield from ((path, value) for value in values_of(kind))
    match kind:
        case inspect.StructType() if isinstance(plain, dict):
            for field in kind.fields:
                if field.name in plain:
                    yield from changes(field.type, plain[field.encode_name], (*path, field.encode_name))
        case inspect.VarTupleType() if plain:
            yield from changes(kind.item_type, plain[0], (*path, 0))
        case inspect.DictType() if plain:
            yield from changes(kind.value_type, next(iter(plain.values())), (*path, next(iter(plain))))
        case inspect.UnionType():
            for each in kind.types:
                if not isinstance(each, inspect.StructType) or each.tag in (None, dict(plain or {}).get("type")):
                    yield from changes(each, plain, path)


def changed(plain: Any, path: Path, value: object) -> Any:
    if not path:
        return value
    first, *rest = path
    inner = changed(plain[first], tuple(rest), value)
    if isinstance(plain, dict):
        return {**plain, first: inner}
    return [inner, *plain[1:]]


def addresses(area: str, samples: dict[str, object]) -> list[str]:
    """Pages that a viewer may read."""
    readable = [page for page in pages() if page.route.startswith(area) and PAGES[page.name].get is Who.VIEWER]
    filled = []
    for page in readable:
        try:
            filled.append(page.filled(samples))
        except LookupError:
            continue
    return filled


def rounds(kind: type[msgspec.Struct], message: msgspec.Struct) -> Iterator[Any]:
    """Messages of the contract in which every field at once has its first, its second … extreme value."""
    plain = msgspec.to_builtins(message)
    by_path: dict[Path, list[object]] = {}
    for path, value in changes(inspect.type_info(kind), plain):
        if (
            path
            and path[-1] not in REFUSED
            and not isinstance(value, list | dict)
            and readable(changed(plain, path, value), kind)
        ):
            by_path.setdefault(path, []).append(value)
    for number in range(max(map(len, by_path.values()))):
        extreme = plain
        for path, values in by_path.items():
            extreme = changed(extreme, path, values[number % len(values)])
        yield extreme


def readable(plain: Any, kind: type[msgspec.Struct]) -> bool:
    try:
        msgspec.convert(plain, kind)
    except msgspec.ValidationError:
        return False
    return True


def failures(client: Client, paths: list[str]) -> list[str]:
    answers = [(path, client.get(path)) for path in paths]
    return [f"{path}: {answer.status_code}" for path, answer in answers if answer.status_code not in (200, 302, 404)]


@pytest.fixture
def admin() -> Client:
    client = Client()
    client.force_login(a_user("anna", Role.ADMIN))
    return client


def test_pages_of_a_host_open_whatever_it_says_of_itself(admin: Client) -> None:
    host, token = a_host_with_token("storage1")
    worker = Client(headers={"authorization": f"Bearer {token}"})
    taken, session = 0, ""
    for plain in rounds(Hello, HELLO):
        understood = {"oldest_contract": 2, "newest_contract": 2, "version": 2}
        body = msgspec.json.encode(plain | understood | {"earlier_sessions": [session]})  # else it is a second worker
        answer = worker.post("/api/worker/v1/hello", body, content_type="application/json")
        assert answer.status_code in (200, 400), answer.content
        if answer.status_code == 200:
            taken, session = taken + 1, plain["session"] or session
        targets = host.targets.values_list("slug", flat=True)
        for target in list(targets)[:2] or ["none"]:
            assert not failures(admin, ["/", *addresses("hosts", {"hosts/slug": host.slug, "hosts/target": target})])
        assert not failures(admin, ["/api/v1/hosts/storage1", "/api/v1/hosts"])
    assert taken


ITEMS: tuple[tuple[Item, ...], ...] = ((ACCEPTED,), (STARTED, sample()), (RESULT,), (DONE,))


@pytest.mark.parametrize("item", [ACCEPTED, STARTED, sample(), RESULT, DONE], ids=lambda item: type(item).__name__)
def test_pages_of_a_run_open_whatever_its_host_reports(admin: Client, item: Item) -> None:
    host, token = a_host_with_token("storage1")
    run = first_look_run(first_look(), [storage1_scratch(host)], repeats=1)
    worker = Client(headers={"authorization": f"Bearer {token}"})
    for trial, extreme in zip(run.trials.order_by("index"), rounds(type(item), item), strict=False):
        attempt = start_trial(trial)
        attempt.confirmed_seq = 0
        attempt.save(update_fields=["confirmed_seq"])
        given = [
            [extreme if type(each) is type(item) else msgspec.to_builtins(each) for each in batch] for batch in ITEMS
        ]
        batches = [{"attempt": str(attempt.pk), "seq": seq, "items": each} for seq, each in enumerate(given, 1)]
        body = msgspec.json.encode({"batches": batches, "version": 2})
        answer = worker.post("/api/worker/v1/report", body, content_type="application/json")
        assert answer.status_code == 200
        assert answer.json()["attempts"][0]["refusal"] is None
        paths = addresses("runs", {"runs/number": run.number, "runs/trial": trial.number})
        assert len(paths) > 4
        paths += ["/results/", "/api/v1/results", f"/api/v1/runs/{run.number}", "/explore/"]
        assert not failures(admin, paths)
        if Attempt.objects.filter(pk=attempt.pk, state="running").exists():
            end_attempt(attempt)


def test_a_trial_shows_cores_with_different_sensors(admin: Client) -> None:
    host, _ = a_host_with_token("storage1")
    run = first_look_run(first_look(), [storage1_scratch(host)], repeats=1)
    attempt = start_trial(run.trials.get(index=0))
    kinds = (SensorKind.CPU_USER, SensorKind.CPU_SYSTEM, SensorKind.CPU_SYSTEM, SensorKind.MEMORY, SensorKind.MEMORY)
    names = ("cpu0", "cpu1", "cpu1", "", ODD)
    sensors = tuple(Sensor(kind=kind, name=name) for kind, name in zip(kinds, names, strict=True))
    first = replace(sample(), telemetry=(1.0, 2.0, None, 3e38, -1.0))
    said = say(host, attempt, (1, (ACCEPTED,)), (2, (replace(STARTED, sensors=sensors), first)), (3, (RESULT, DONE)))
    assert said.refusal is None
    assert not failures(admin, addresses("runs", {"runs/number": run.number, "runs/trial": 1}))


def test_a_host_shows_functions_that_are_their_own_parents(admin: Client) -> None:
    host, token = a_host_with_token("storage1")
    link = PcieLink(transfers_per_s=1, lanes=1, payload_bytes=0)
    pci = tuple(
        PciFunction(address=address, parent=parent, kind="", vendor_id="", device_id="", link=link, downstream=down)
        for address, parent, down in (("", "", False), ("a", "b", True), ("b", "a", False), ("c", "c", False))
    )
    (first, *_) = HELLO.inventory.block_devices
    devices = tuple(replace(first, name=f"sd{name}", parents=(), controller=name) for name in ("", "a", "b", "c"))
    inventory = replace(HELLO.inventory, pci=pci, block_devices=devices)
    targets = tuple(replace(HELLO.targets[0], id=f"t{device.name}", device=device.name) for device in devices)
    body = encode(replace(HELLO, inventory=inventory, targets=targets))
    worker = Client(headers={"authorization": f"Bearer {token}"})
    assert worker.post("/api/worker/v1/hello", body, content_type="application/json").status_code == 200
    for device in devices:
        samples: dict[str, object] = {"hosts/slug": host.slug, "hosts/target": f"t{device.name}"}
        assert not failures(admin, addresses("hosts", samples))
