"""One example of every message; the documentation shows these and a test holds them to it."""

from msgspec import structs

from worker.contract.array_action import ArrayAction
from worker.contract.file_copy import CopyMethod
from worker.contract.fio_options import FioOptions
from worker.contract.greetings import Enrol, EnrolReply, Hello, HelloReply, Problem, TokenReply, TokenRequest
from worker.contract.inventory import (
    Capabilities,
    DriveHealth,
    EngineOffer,
    PolicyTarget,
    PurgeMethod,
    PurgeOffer,
)
from worker.contract.items import (
    Accepted,
    Attachment,
    CommonStart,
    DeviceSample,
    Direction,
    DirectionResult,
    DirectionSample,
    DriveReading,
    Finished,
    KernelLine,
    KernelLog,
    LatencyKind,
    MediaType,
    Metric,
    Observed,
    Outcome,
    Phase,
    PhaseName,
    Purged,
    ReadingMoment,
    Sample,
    Sensor,
    SensorKind,
    SettingRecord,
    SettingRestored,
    StreamResult,
    StreamStarted,
    Unit,
)
from worker.contract.layouts import FileSystem as FileSystemKind
from worker.contract.layouts import Layout, Raid
from worker.contract.orders import (
    Arming,
    CloseRunOrder,
    InventoryOrder,
    LayoutRequest,
    PurgeOrder,
    SettingOperation,
    SettingOrder,
    SettingRequest,
    TrialOrder,
)
from worker.contract.packing import Histogram, pack
from worker.contract.reports import (
    AttemptReply,
    Batch,
    LogLevel,
    LogLine,
    Refusal,
    Report,
    ReportReply,
    StartReply,
    StartRequest,
    WorkerLog,
)
from worker.contract.signing import Endorsement
from worker.contract.tests.example_inventory import INVENTORY
from worker.contract.workload import (
    ArrayActionWorkload,
    BlockShare,
    Confidence,
    CopyWorkload,
    FioWorkload,
    FlushStep,
    IdleWorkload,
    MemoryWorkload,
    OltpWorkload,
    Pattern,
    PauseStep,
    PgbenchWorkload,
    Settled,
    SteadyRounds,
    Stopped,
    Stream,
    SysbenchWorkload,
    TargetKind,
    TargetRef,
    WriteStep,
)

HOST = "0e4ad8a6-5b4c-4c0e-9a54-0f3f1b6f6c11"
ATTEMPT = "6a0f3f0e-94cf-4f46-9a3d-6d7c3f0b8a01"
RUN = "8c1b3b62-2f5f-4b43-8a43-6a4d6d3f9b02"
TRIAL = "b4b2a0c4-0d3e-4f7a-9a5b-2f9d6c1e7a03"
AT = 1_790_000_000.0

DRIVE = TargetRef(
    id="nvme0",
    kind=TargetKind.BLOCK,
    path="/dev/nvme0n1",
    stable_id="eui.0025385b71b0a2f1",
    serial="S4EWNX0R512345",
)
STREAM = Stream(number=0, target=DRIVE, workload=FioWorkload(pattern=Pattern.RANDREAD, iodepth=32, runtime_s=60))

IDLE = IdleWorkload(runtime_s=300)
SYSBENCH = SysbenchWorkload(size_bytes=1024**3, files=4, threads=16, runtime_s=60)
OLTP = OltpWorkload(tables=4, rows=1_000_000, threads=16)
MEMORY = MemoryWorkload(threads=8, runtime_s=30)
ARRAY_ACTION = ArrayActionWorkload(action=ArrayAction.REBUILD, runtime_s=600)
PGBENCH = PgbenchWorkload(scale=100, clients=16, threads=4, runtime_s=60)
COPY = CopyWorkload(size_bytes=1024**3, files=4, method=CopyMethod.DIRECT)
SPLIT = FioWorkload(
    pattern=Pattern.RANDRW,
    read_percent=70,
    block_split=(BlockShare(block_bytes=4096, percent=60), BlockShare(block_bytes=65_536, percent=40)),
    options=FioOptions(random_distribution="zipf:1.1", fdatasync=32),
    amount_bytes=10_737_418_240,
)
STOP_RULES = (Confidence(percent=2.0), SteadyRounds(round_s=60), Settled(hold_s=60))
LAYOUT_REQUEST = LayoutRequest(
    pool="rack",
    layout=Layout(
        raid=Raid.RAID1,
        drives_per_array=2,
        file_system=FileSystemKind.XFS,
        mount_options=("noatime",),
    ),
    drives=(
        DRIVE,
        structs.replace(DRIVE, id="nvme1", path="/dev/nvme1n1", stable_id="eui.02", serial="S4EWNX0R5123"),
    ),
)

TRIAL_ORDER = TrialOrder(
    host=HOST,
    attempt=ATTEMPT,
    issued_at=AT,
    expires_at=AT + 300,
    run=RUN,
    trial=TRIAL,
    streams=(STREAM,),
    settings=(SettingRequest(name="scheduler", value="none"),),
    drop_caches=True,
    steps=(WriteStep(block_bytes=131_072, times=2), FlushStep(), PauseStep(seconds=60)),
    arming=Arming(serials=("S4EWNX0R512345",), by="olga", until=AT + 3000, run_began=AT - 10),
)
CLOSE_RUN_ORDER = CloseRunOrder(host=HOST, attempt=ATTEMPT, issued_at=AT, expires_at=AT + 300, run=RUN)
PURGE_ORDER = PurgeOrder(
    host=HOST,
    attempt=ATTEMPT,
    issued_at=AT,
    expires_at=AT + 300,
    target=DRIVE,
    method=PurgeMethod.DISCARD,
    arming=Arming(serials=("S4EWNX0R512345",), by="olga", until=AT + 3600),
)
SETTING_ORDER = SettingOrder(
    host=HOST,
    attempt=ATTEMPT,
    issued_at=AT,
    expires_at=AT + 300,
    target=DRIVE,
    name="scheduler",
    operation=SettingOperation.SET,
    value="none",
)
PURGED = Purged(
    at=AT + 4,
    device="nvme0n1",
    serial="S4EWNX0R512345",
    method=PurgeMethod.DISCARD,
    commands=("BLKDISCARD /dev/nvme0n1 0 960197124096",),
    samples=256,
    samples_not_zero=0,
    seconds=3.2,
)
INVENTORY_ORDER = InventoryOrder(host=HOST, attempt=ATTEMPT, issued_at=AT, expires_at=AT + 300)

BINS = Histogram(latency_ns=(78_336, 79_360, 80_384), counts=(30_000, 64_000, 6_000))
DEVICE = DeviceSample(
    device="nvme0n1",
    utilisation_percent=99.8,
    queue_depth=31.7,
    read_ios=100_004,
    write_ios=0,
    read_bytes=409_616_384,
    write_bytes=0,
)
SAMPLE = Sample(
    stream=0,
    offset_ms=1000,
    length_ms=1000,
    at=AT + 1,
    directions=(
        DirectionSample(
            direction=Direction.READ,
            ios=100_000,
            bytes=409_600_000,
            latency=pack(BINS),
            p50_ns=79_360,
            p99_ns=80_384,
            p999_ns=80_384,
        ),
    ),
    device=DEVICE,
    telemetry=(23.5, 41, 3.5, 0, 61250, 38.9, None),
)
STREAM_RESULT = StreamResult(
    stream=0,
    metrics={"copy_s": 12.5},
    started_at=AT,
    ended_at=AT + 60,
    engine_version="fio-3.33",
    exit_code=0,
    stderr="",
    directions=(
        DirectionResult(
            direction=Direction.READ,
            ios=100_000,
            bytes=409_600_000,
            runtime_ms=1000,
            iops=100_000.0,
            bytes_per_s=409_600_000.0,
            latency_kind=LatencyKind.LAT,
            latency_min_ns=71_000.0,
            latency_mean_ns=79_114.2,
            latency_max_ns=1_210_000.0,
            latency_stddev_ns=2_310.5,
            latency=pack(BINS),
        ),
    ),
    usr_cpu_percent=11.2,
    sys_cpu_percent=24.0,
    device=DEVICE,
    samples=60,
    stopped=Stopped(
        rule=Confidence(percent=2), reached=True, at_ms=18_004, from_ms=6_001, to_ms=18_004, interval_percent=1.4
    ),
    stalled_s=0,
    attachments=(Attachment(name="fio.json", media_type=MediaType.JSON, text="{}"),),
)
HEALTH = DriveHealth(
    device="nvme0n1",
    serial="S4EWNX0R512345",
    tool="smartctl 7.3",
    healthy=True,
    temperature_c=38,
    percent_used=3,
    host_written_bytes=412_316_860_416_000,
    host_unit_bytes=512_000,
    media_written_bytes=742_170_348_748_800,
    media_unit_bytes=1,
    power_on_hours=12_045,
    media_errors=0,
)
ITEMS = (
    Accepted(at=AT, worker_version="0.1.0"),
    Phase(at=AT, name=PhaseName.PREFILL, stream=0, files=1, file_bytes=268435456, percent=41.5),
    SettingRecord(at=AT, name="scheduler", device="nvme0n1", before="mq-deadline", asked="none", observed="none"),
    SettingRestored(
        at=AT, name="scheduler", device="nvme0n1", value="mq-deadline", observed="mq-deadline", restored=True
    ),
    PURGED,
    DriveReading(
        at=AT,
        moment=ReadingMoment.BEFORE,
        device="nvme0n1",
        drive="eui.0025385b71b0a2f1",
        serial="S4EWNX0R512345",
        model="SAMSUNG MZQLB960HAJR-00007",
        boot_id="8e0f7a52-6d3a-45a0-a4ff-0f0fd1a2b301",
        kernel_written_bytes=81_920_000_000,
        told=HEALTH,
    ),
    CommonStart(at=AT + 0.25, start_at=AT, uncertainty_s=0.001),
    Observed(at=AT, facts={"kernel.release": "6.1.0-28-amd64", "device.scheduler": "none"}),
    StreamStarted(
        at=AT,
        stream=0,
        job_text="[stream0]\nfilename=/dev/nvme0n1\n",
        command=("fio", "-"),
        metrics=(Metric(name="copy_s", label="Copy time", unit=Unit.SECONDS, lower_is_better=True),),
        sensors=(
            Sensor(kind=SensorKind.CPU_USER, name="cpu0"),
            Sensor(kind=SensorKind.CPU_SYSTEM, name="cpu0"),
            Sensor(kind=SensorKind.CPU_IRQ, name="cpu0"),
            Sensor(kind=SensorKind.CPU_IOWAIT, name="cpu0"),
            Sensor(kind=SensorKind.INTERRUPTS, name="nvme 0000:41:00.0"),
            Sensor(kind=SensorKind.TEMPERATURE, name="nvme0n1"),
            Sensor(kind=SensorKind.POWER, name="server (IPMI)"),
        ),
        kernel_log=True,
    ),
    SAMPLE,
    KernelLog(
        lines=(KernelLine(sequence=1417, at=AT + 1, level=4, text="nvme nvme0: I/O 12 QID 3 timeout, aborting"),)
    ),
    STREAM_RESULT,
    Finished(at=AT + 61, outcome=Outcome.DONE),
)
START_REQUEST = StartRequest(attempt=ATTEMPT)
START_REPLY = StartReply(received_at=AT, sent_at=AT + 0.002, start_at=AT + 4)
REPORT = Report(batches=(Batch(attempt=ATTEMPT, seq=1, items=ITEMS),), active=(ATTEMPT,))
REPORT_REPLY = ReportReply(
    attempts=(
        AttemptReply(attempt=ATTEMPT, confirmed_seq=1, lease_until=AT + 900),
        AttemptReply(
            attempt=TRIAL,
            confirmed_seq=0,
            refusal=Refusal(code="unknown_attempt", message="This host has no such attempt on this server.", seq=1),
        ),
    )
)

CAPABILITIES = Capabilities(
    engines={
        "fio": EngineOffer(version="fio-3.33", features=("io_uring", "libaio", "psync", "fixedbufs", "registerfiles"))
    },
    settings=("scheduler", "read_ahead_kb"),
    as_root=True,
    isolation="cgroup2",
)
HELLO = Hello(
    worker_version="0.1.0",
    oldest_contract=2,
    newest_contract=2,
    boot_id="8e0f7a52-6d3a-45a0-a4ff-0f0fd1a2b301",
    at=AT,
    inventory=INVENTORY,
    capabilities=CAPABILITIES,
    targets=(
        PolicyTarget(
            id="nvme0",
            kind=TargetKind.BLOCK,
            path="/dev/disk/by-id/nvme-eui.0025385b71b0a2f1",
            stable_id="eui.0025385b71b0a2f1",
            serial="S4EWNX0R512345",
            destroy=True,
            destroy_signatures=("gpt", "PMBR"),
            settings=("scheduler",),
            present=True,
            size_bytes=960_197_124_096,
            logical_block_bytes=512,
            device="nvme0n1",
            purges=(PurgeOffer(method=PurgeMethod.DISCARD),),
            opens="/dev/nvme0n1",
            warnings=(
                "nvme0n1 was purged and not written since, so it can answer reads without reading its flash. "
                "Fill it before you measure reads.",
            ),
        ),
    ),
    trusted_keys=("8f865375a57c2ff2",),
    health=(HEALTH,),
    host_settings=("vm.dirty_ratio", "vm.dirty_bytes"),
)
HELLO_REPLY = HelloReply(
    contract=2,
    server_time=AT,
    public_keys={"8f865375a57c2ff2": "q83vEjRWeJCrze8SNFZ4kKvN7xI0"},
    endorsements=(
        Endorsement(
            public_key="q83vEjRWeJCrze8SNFZ4kKvN7xI0", by="0b1c2d3e4f5a6b7c", signature="ASNFZ4mrze8BI0VniavN7w=="
        ),
    ),
)
WORKER_LOG = WorkerLog(
    session="5f0c3b7a91d2e604",
    lines=(
        LogLine(
            number=41,
            at=AT,
            level=LogLevel.INFO,
            text="worker.orders.executor: Started trial 12 of run 3.",
            attempt=ATTEMPT,
        ),
        LogLine(
            number=42,
            at=AT + 2,
            level=LogLevel.WARNING,
            text="worker.link.registration: The registration was not delivered: timed out",
        ),
    ),
)
TOKEN_REQUEST = TokenRequest()
TOKEN_REPLY = TokenReply(
    host_token="the-next-one-kept-by-the-worker-as-well",
    broker_url="rediss://host.0.0e4ad8a6-5b4c-4c0e-9a54-0f3f1b6f6c11:the-next-one-of-these@broker.example:6379/0",
)
ENROL = Enrol(
    token="one-time-token-from-the-browser",
    hostname="storage1",
    worker_version="0.1.0",
    oldest_contract=2,
    newest_contract=2,
)
ENROL_REPLY = EnrolReply(
    host=HOST,
    host_name="storage1",
    host_token="kept-by-the-worker-and-shown-nowhere",
    broker_url=f"rediss://host.0.{HOST}:kept-by-the-worker-too@broker.example:6379/0",
    public_keys={"8f865375a57c2ff2": "q83vEjRWeJCrze8SNFZ4kKvN7xI0"},
    contract=2,
)
PROBLEM = Problem(
    code="version_mismatch",
    message="Hello is of contract version 9; this side understands 2 to 2. Upgrade this side.",
)
