"""Measurements in bytes/s, ns and IOPS. Raw samples are kept; everything else can be rebuilt from them."""

import zlib
from datetime import date
from typing import TypeVar

from django.conf import settings
from django.contrib.postgres.fields import ArrayField
from django.contrib.postgres.indexes import GinIndex
from django.db import models
from django.db.models import F, Q
from django.utils import timezone

from webapp.hosts.models import Host, Target
from webapp.runs.models import Attempt, Run, Trial
from worker.contract.items import Direction


class Real(models.FloatField):  # type: ignore[type-arg]
    """PostgreSQL's float of four bytes: seven digits are more than a sensor has."""

    def db_type(self, connection: object) -> str:  # noqa: ARG002 - the framework names it
        return "real"


class Configuration(models.Model):
    """The observed hardware and settings during a stream, content-addressed."""

    digest = models.CharField(max_length=64, primary_key=True)  # SHA-256 of the canonical JSON
    facts = models.JSONField()  # flat: name -> text
    controller = models.CharField(max_length=200, blank=True, db_index=True)  # its model, as `reading.rows` shows it


class StreamRun(models.Model):
    """One stream of one attempt: its job and the engine's final output."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="streams")
    stream = models.PositiveSmallIntegerField()
    job_text = models.TextField()
    command = models.JSONField()
    configuration = models.ForeignKey(Configuration, on_delete=models.PROTECT, related_name="streams", null=True)
    started_at = models.DateTimeField()
    began_at = models.DateTimeField(null=True)  # when its measured part began, by the engine's own time
    ended_at = models.DateTimeField(null=True)
    engine_version = models.CharField(max_length=40, blank=True)
    exit_code = models.IntegerField(null=True)
    stderr = models.TextField(blank=True)
    # JSON of its DirectionResults; emptied if it is the only stream of a done attempt, because the results are the same
    directions = models.BinaryField(default=b"")
    usr_cpu_percent = models.FloatField(null=True)
    sys_cpu_percent = models.FloatField(null=True)
    device = models.JSONField(null=True)  # contract.items.DeviceSample over the whole stream
    # As declared at its start and measured: [{"name", "label", "unit", "lower_is_better", "value"}], value null before
    metrics = models.JSONField(default=list)
    samples_sent = models.PositiveIntegerField(default=0)
    stalled_s = models.FloatField(default=0)  # after which the engine was killed, because its device was frozen
    stopped = models.JSONField(null=True)  # contract.stopping.Stopped; null without a stop rule
    sensors = models.JSONField(default=list)  # [kind, name] of each value in its samples' `telemetry`
    kernel_log_read = models.BooleanField(default=False)  # if not, no lines does not mean no errors

    class Meta:
        constraints = [models.UniqueConstraint(fields=["attempt", "stream"], name="streamrun_once")]


class Attachment(models.Model):
    """A file written by the engine of a stream, such as fio's JSON."""

    stream_run = models.ForeignKey(StreamRun, on_delete=models.CASCADE, related_name="attachments")
    name = models.CharField(max_length=60)
    media_type = models.CharField(max_length=60)  # contract.items.MediaType
    compressed = models.BinaryField()  # zlib

    class Meta:
        ordering = ["name"]
        constraints = [models.UniqueConstraint(fields=["stream_run", "name"], name="attachment_once")]

    @property
    def content(self) -> bytes:
        return zlib.decompress(bytes(self.compressed))


def utc_today() -> date:
    return timezone.now().date()


class Sample(models.Model):
    """One direction of one interval of a stream. The table is partitioned by `day`, see `results.retention`."""

    pk = models.CompositePrimaryKey("attempt_id", "stream", "offset_ms", "direction")
    # Without a constraint: dropping a partition with one would lock all attempts. Without an index: the primary key
    # starts with this column. A sample is written while its attempt is locked.
    attempt = models.ForeignKey(
        Attempt, on_delete=models.CASCADE, related_name="samples", db_constraint=False, db_index=False
    )
    day = models.DateField(default=utc_today)  # on which the server created the attempt (UTC)
    stream = models.PositiveSmallIntegerField()
    offset_ms = models.PositiveIntegerField()  # end of the interval, since the measured part began
    length_ms = models.PositiveIntegerField()
    direction = models.CharField(max_length=12)  # contract.items.Direction, or NO_IO
    at = models.DateTimeField()  # end of the interval
    estimated = models.BooleanField(default=False)  # its I/Os are a share of those of a longer time without a report
    ios = models.BigIntegerField()
    bytes = models.BigIntegerField()
    p50_ns = models.BigIntegerField(null=True)  # null if the interval has too few I/Os for it
    p99_ns = models.BigIntegerField(null=True)
    p999_ns = models.BigIntegerField(null=True)
    latency = models.BinaryField()  # contract.packing: the interval's histogram
    utilisation_percent = models.FloatField(null=True)
    queue_depth = models.FloatField(null=True)
    telemetry = ArrayField(Real(null=True), null=True)  # in the order of the stream's sensors, first direction only
    # I/Os per second in the ten seconds that the sample stands for after thinning; null before, see `results.retention`
    iops_min = models.FloatField(null=True)
    iops_mean = models.FloatField(null=True)
    iops_max = models.FloatField(null=True)


class KernelLine(models.Model):
    """A line of the kernel log about storage errors during an attempt."""

    pk = models.CompositePrimaryKey("attempt_id", "sequence")
    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="kernel_lines")
    sequence = models.BigIntegerField()  # the kernel's sequence number of the line
    at = models.DateTimeField()
    level = models.PositiveSmallIntegerField()  # syslog's: 3 error, 4 warning
    text = models.TextField()
    elsewhere = models.BooleanField(default=False)  # names neither the trial's devices nor their parents or links


class DriveReading(models.Model):
    """A drive's counters of written bytes before or after an attempt that writes: contract.items.DriveReading."""

    attempt = models.ForeignKey(Attempt, on_delete=models.CASCADE, related_name="drive_readings")
    at = models.DateTimeField()
    moment = models.CharField(max_length=6)  # contract.items.ReadingMoment
    device = models.CharField(max_length=200)  # kernel name
    drive = models.CharField(max_length=100)  # stable id
    serial = models.CharField(max_length=200, blank=True)
    model = models.CharField(max_length=200, blank=True)
    boot_id = models.CharField(max_length=200)
    kernel_written_bytes = models.BigIntegerField(null=True)
    # As reported by the drive, else null. A unit is the number of bytes per count.
    host_written_bytes = models.BigIntegerField(null=True)
    host_unit_bytes = models.BigIntegerField(null=True)
    media_written_bytes = models.BigIntegerField(null=True)
    media_unit_bytes = models.BigIntegerField(null=True)
    host_pages = models.BigIntegerField(null=True)
    media_pages = models.BigIntegerField(null=True)
    percent_used = models.IntegerField(null=True)
    problem = models.CharField(max_length=2000, blank=True)  # why the drive could not be read

    class Meta:
        ordering = ["id"]  # in the order of reading: a host executes one order at a time
        constraints = [
            models.UniqueConstraint(fields=["attempt", "drive", "moment"], name="drive_reading_once"),
            models.CheckConstraint(
                condition=Q(moment__in=["before", "after", "closed"]), name="drive_reading_moment_known"
            ),
        ]


class ImportState(models.TextChoices):
    WAITING = "waiting", "Waiting"
    READING = "reading", "Reading"
    DONE = "done", "Done"
    FAILED = "failed", "Failed"


class Import(models.Model):
    """Results that no run measured: files of other tools, or a published table (a reference)."""

    number = models.PositiveIntegerField(unique=True)
    slug = models.SlugField(max_length=60, unique=True, null=True)  # of a reference, null for files of a person
    title = models.CharField(max_length=200)
    source = models.TextField(blank=True)  # who published it and where
    source_date = models.CharField(max_length=40, blank=True)  # as stated: 2009-10
    note = models.TextField(blank=True)
    pattern = models.CharField(max_length=300, blank=True)  # of labels in paths (imports.labels)
    labels = models.JSONField(default=dict)  # given by hand; they count before those of paths and tools
    columns = models.JSONField(default=dict)  # of plain CSV: the field of each column (imports.columns)
    state = models.CharField(max_length=7, choices=ImportState.choices, default=ImportState.WAITING)
    problem = models.TextField(blank=True)  # why it failed
    files_read = models.PositiveIntegerField(default=0)
    files_refused = models.PositiveIntegerField(default=0)
    results_made = models.PositiveIntegerField(default=0)
    seconds = models.FloatField(default=0)
    digest = models.CharField(max_length=64, blank=True)  # of a reference's data: it is loaded again if this changed
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(default=timezone.now)

    class Meta:
        ordering = ["-number"]
        constraints = [models.CheckConstraint(condition=Q(state__in=ImportState.values), name="import_state_known")]

    def __str__(self) -> str:
        return f"import {self.number}"


class ImportedFile(models.Model):
    """A file of an import: what it became, or why it was left out."""

    imported = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="files")
    path = models.TextField()  # inside what was imported, with the names of archives as folders
    digest = models.CharField(max_length=64, blank=True)  # SHA-256 of the text, "" for a file without results
    format = models.CharField(max_length=40, blank=True)  # imports.formats, "" if not recognised
    results = models.PositiveIntegerField(default=0)
    reason = models.TextField(blank=True)  # why it was left out, a sentence
    code = models.CharField(max_length=60, blank=True)  # the code of the reason
    notes = models.JSONField(default=list)  # what was assumed, sentences

    class Meta:
        ordering = ["id"]
        indexes = [
            models.Index(fields=["digest"], name="imported_file_digest", condition=~Q(digest="")),
        ]


class Origin(models.Model):
    """One test of one file of an import, and the labels of what was measured."""

    imported = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="origins")
    file = models.ForeignKey(ImportedFile, on_delete=models.CASCADE, related_name="origins")
    number = models.PositiveIntegerField()  # in its import, from 1
    tool = models.CharField(max_length=40)
    tool_version = models.CharField(max_length=1000, blank=True)
    name = models.CharField(max_length=1000, blank=True)  # the tool's name of the test
    host = models.CharField(max_length=200, blank=True)
    controller = models.CharField(max_length=200, blank=True)
    drive = models.CharField(max_length=200, blank=True)  # its model
    serial = models.CharField(max_length=200, blank=True)
    layout = models.CharField(max_length=200, blank=True)
    other = models.JSONField(default=dict)  # further labels, and what the tool states without a factor of ours
    notes = models.JSONField(default=list)  # what was assumed, sentences
    repeat = models.PositiveIntegerField(default=1)
    time_known = models.BooleanField(default=True)  # else `measured_at` of its results is the time of the import
    series = models.BinaryField(null=True)  # zlib of the JSON of imports.measurement.Point, by time

    class Meta:
        constraints = [models.UniqueConstraint(fields=["imported", "number"], name="origin_once")]


BOTH = "read + write"  # the same words as a total of a trial's directions (compare.mixes)
NO_IO = "none"  # the only row of a trial without I/O, and of its samples
WITHOUT_BYTES = (Direction.TRANSACTION.value, NO_IO)  # their I/Os, bytes and rates are null
WITHOUT_IOS = (Direction.RESYNC.value, *WITHOUT_BYTES)  # their I/Os and IOPS are null
_BY_RUN = ("trial", "stream_run", "run", "host", "target", "repeat")
_COUNTED = ("ios", "bytes", "runtime_ms", "iops", "bytes_per_s")  # what a direction of a mix without I/O has
_MEASURED = (*_COUNTED, "latency_min_ns", "latency_mean_ns", "latency_max_ns", "latency_stddev_ns")


class Result(models.Model):
    """One direction of what was measured once: by a finished trial, as the sum over its streams
    (`results.ingest.sums`) or by one of its named streams (docs/understanding/decisions/0020), or by another tool
    (`origin`), which may state only some of the values.

    `target` and `stream_run` are of the first stream, or of the named one.
    """

    trial = models.ForeignKey(Trial, on_delete=models.CASCADE, related_name="results", null=True)
    stream_run = models.ForeignKey(StreamRun, on_delete=models.CASCADE, related_name="results", null=True)
    origin = models.ForeignKey(Origin, on_delete=models.CASCADE, related_name="results", null=True, db_index=False)
    direction = models.CharField(
        max_length=12
    )  # contract.items.Direction, NO_IO, or BOTH if a tool states only the sum
    # Copied for filtering without joins; they never change once a trial has ended.
    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="results", db_index=False, null=True)
    host = models.ForeignKey(Host, on_delete=models.PROTECT, related_name="+", db_index=False, null=True)
    target = models.ForeignKey(Target, on_delete=models.PROTECT, related_name="+", db_index=False, null=True)
    repeat = models.PositiveIntegerField(null=True)
    point = models.JSONField()
    point_key = models.CharField(max_length=64)
    measured_at = models.DateTimeField()
    ios = models.BigIntegerField(null=True)
    bytes = models.BigIntegerField(null=True)
    runtime_ms = models.BigIntegerField(null=True)
    iops = models.FloatField(null=True)
    bytes_per_s = models.FloatField(null=True)
    latency_kind = models.CharField(max_length=4, blank=True)  # lat | clat, "" if the tool does not say
    latency_min_ns = models.FloatField(null=True)
    latency_mean_ns = models.FloatField(null=True)
    latency_max_ns = models.FloatField(null=True)
    latency_stddev_ns = models.FloatField(null=True)
    p50_ns = models.BigIntegerField(null=True)
    p95_ns = models.BigIntegerField(null=True)
    p99_ns = models.BigIntegerField(null=True)
    p999_ns = models.BigIntegerField(null=True)
    latency = models.BinaryField()  # contract.packing: the whole histogram
    metrics = models.JSONField(default=dict)  # the engine's own, by name; in the last direction of the trial only
    # The verdict on the series of the trial, and its numbers: contract.steadiness.Steadiness
    steadiness = models.CharField(max_length=9, blank=True)
    steadiness_numbers = models.JSONField(default=dict)
    # Bytes that the devices counted / bytes of the engine; null for trims, and if a device does not count
    device_share = models.FloatField(null=True)
    settings_changed = models.BooleanField(default=False)  # by something else, during the measurement
    kernel_lines = models.PositiveIntegerField(default=0)  # of its attempt, shown as a warning next to the numbers
    invalid = models.BooleanField(default=False)  # copied from the trial or the run, for filters
    reference = models.BooleanField(default=False)  # copied from the import, for filters

    class Meta:
        ordering = ["-measured_at", "-id"]
        constraints = [
            models.UniqueConstraint(fields=["stream_run", "direction"], name="result_once"),
            models.UniqueConstraint(fields=["origin", "direction"], name="result_once_of_origin"),
            models.CheckConstraint(
                condition=Q(direction__in=[*(each.value for each in Direction), NO_IO])
                | Q(direction=BOTH, origin__isnull=False),
                name="result_direction_known",
            ),
            models.CheckConstraint(
                condition=Q(origin=None, **{f"{name}__isnull": False for name in (*_BY_RUN, *_MEASURED)})
                | Q(origin=None, direction__in=WITHOUT_IOS, **{f"{name}__isnull": False for name in _BY_RUN})
                | Q(origin=None, ios=0, **{f"{name}__isnull": False for name in (*_BY_RUN, *_COUNTED)})
                | Q(origin__isnull=False, **dict.fromkeys(_BY_RUN)),
                name="result_of_run_or_import",
            ),
            models.CheckConstraint(condition=Q(iops__gte=0, bytes_per_s__gte=0), name="result_not_negative"),
            models.CheckConstraint(
                condition=Q(latency_min_ns__lte=F("latency_max_ns")), name="result_latency_in_order"
            ),
        ]
        indexes = [
            GinIndex(fields=["point"], name="result_point", opclasses=["jsonb_path_ops"]),
            models.Index(fields=["-measured_at", "-id"], name="result_latest_first"),
            # the newest of a host or target, and the indexes of the foreign keys
            models.Index(fields=["host", "-measured_at", "-id"], name="result_latest_of_host"),
            models.Index(fields=["target", "-measured_at", "-id"], name="result_latest_of_target"),
            models.Index(fields=["run", "point_key"], name="result_of_point"),
            models.Index(fields=["origin"], name="result_of_origin", condition=Q(origin__isnull=False)),
            # which targets have valid results of which point, and the newest of them
            models.Index(fields=["point_key", "target", "id"], name="result_of_workload", condition=Q(invalid=False)),
            # the number of results left out of a view; there are few
            models.Index(fields=["run"], name="result_invalid", condition=Q(invalid=True)),
            # sort orders of the table of results, page by page (results.reading.query)
            *(
                models.Index(fields=[column, "id"], name=f"result_by_{column.removesuffix('_ns')}")
                for column in (
                    "iops", "bytes_per_s", "latency_mean_ns", "latency_max_ns", "p50_ns", "p95_ns", "p99_ns", "p999_ns",
                )
            ),
        ]  # fmt: skip


Known = TypeVar("Known")


def known(value: Known | None) -> Known:
    """A value that an I/O result of a run always has (constraint result_of_run_or_import), and others may lack."""
    assert value is not None
    return value


class ColumnChoice(models.Model):
    """The columns that a person chose for the table of results."""

    user = models.OneToOneField(settings.AUTH_USER_MODEL, on_delete=models.CASCADE, related_name="+")
    columns = models.JSONField()  # keys of screens.results.columns
