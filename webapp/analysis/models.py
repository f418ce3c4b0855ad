"""Comparisons that people keep: title, note and query, frozen numbers, and links for people without an account. Prices,
and the findings of runs and imports, with what people think of those of runs."""

from django.conf import settings
from django.db import models

from webapp.plans.models import Plan
from webapp.results.models import Import
from webapp.runs.models import Run

QUERY_VERSION = 1  # of how an address is read; a later reader can tell older ones by it


class SavedComparison(models.Model):
    """Stores the query, which is answered anew when it is opened, unless the numbers are frozen."""

    title = models.CharField(max_length=200)
    note = models.TextField(blank=True)  # Markdown
    query = models.TextField()  # of the address, urlencoded: what is compared and how it is shown
    query_version = models.PositiveSmallIntegerField(default=QUERY_VERSION)
    owner = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    changed_at = models.DateTimeField(auto_now=True)
    deleted_at = models.DateTimeField(null=True)  # can be restored
    frozen = models.BinaryField(null=True)  # zlib of the JSON of an answer of Explore, or of a report of Bench
    frozen_at = models.DateTimeField(null=True)

    class Meta:
        ordering = ["-changed_at", "-id"]
        constraints = [
            models.CheckConstraint(condition=~models.Q(title=""), name="savedcomparison_has_title"),
            models.CheckConstraint(
                condition=models.Q(frozen__isnull=True, frozen_at__isnull=True)
                | models.Q(frozen__isnull=False, frozen_at__isnull=False),
                name="savedcomparison_frozen_has_date",
            ),
        ]

    def __str__(self) -> str:
        return self.title


class ComparisonLink(models.Model):
    """An address with a token that shows one comparison to anybody who has it. Only the token's SHA-256 is stored."""

    comparison = models.ForeignKey(SavedComparison, on_delete=models.CASCADE, related_name="links")
    name = models.CharField(max_length=100)  # who or what it is for
    token_hash = models.CharField(max_length=64, unique=True)
    created_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    created_at = models.DateTimeField(auto_now_add=True)
    revoked_at = models.DateTimeField(null=True)
    with_account = models.BooleanField(default=False)  # revoked because the account of who created it ended

    class Meta:
        ordering = ["-created_at", "-id"]

    def __str__(self) -> str:
        return f"{self.comparison}: {self.name}"


class Price(models.Model):
    """What one drive of a model, or one controller, cost, as a person entered it."""

    kind = models.CharField(max_length=20)  # model | controller
    name = models.CharField(max_length=200)  # as in the address of its page
    amount = models.DecimalField(max_digits=12, decimal_places=2)
    currency = models.CharField(max_length=3)  # ISO 4217: EUR
    priced_on = models.DateField()
    set_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    set_at = models.DateTimeField(auto_now=True)

    class Meta:
        constraints = [
            models.UniqueConstraint(fields=["kind", "name"], name="price_once"),
            models.CheckConstraint(condition=models.Q(amount__gt=0), name="price_above_zero"),
        ]

    def __str__(self) -> str:
        return self.name


class EnteredCeiling(models.Model):
    """What limits a controller, a backplane, a host or the system of an import, as a person entered it."""

    class Kind(models.TextChoices):
        CONTROLLER = "controller", "Controller"
        BACKPLANE = "backplane", "Backplane"
        HOST = "host", "Host"
        IMPORT = "import", "Import"

    kind = models.CharField(max_length=10, choices=Kind.choices)
    name = models.CharField(max_length=200)  # as results state it; of a host its id in addresses, of an import a number
    text = models.CharField(max_length=120)  # hosts.inventory.links.read_link reads it
    set_by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    set_at = models.DateTimeField(auto_now=True)

    class Meta:
        ordering = ["kind", "name", "text"]
        constraints = [
            models.UniqueConstraint(fields=["kind", "name", "text"], name="enteredceiling_once"),
            models.CheckConstraint(
                condition=models.Q(kind__in=["controller", "backplane", "host", "import"]), name="enteredceiling_known"
            ),
        ]

    def __str__(self) -> str:
        return f"{self.text} of {self.kind} {self.name}"


class StoredFinding(models.Model):
    """A finding of an ended run. Written and read by `analysis.run_findings`."""

    run = models.ForeignKey(Run, on_delete=models.CASCADE, related_name="+")
    place = models.PositiveIntegerField()  # among those of its run, from 0: the most important
    key = models.CharField(max_length=24)  # the same for the same subject in another run of the plan
    content = models.JSONField()  # analysis.evidence.RunFinding

    class Meta:
        ordering = ["run", "place"]
        constraints = [models.UniqueConstraint(fields=["run", "place"], name="storedfinding_once_of_run")]

    def __str__(self) -> str:
        return f"finding {self.place} of {self.run}"


class FindingsMade(models.Model):
    """When the findings of a run were made, and from what. They are made again if this has changed."""

    run = models.OneToOneField(Run, on_delete=models.CASCADE, related_name="+")
    version = models.PositiveSmallIntegerField()  # of the rules: analysis.run_answer.VERSION
    seal = models.CharField(max_length=64)  # how often results of the run were marked as invalid or valid
    made_at = models.DateTimeField()
    failed = models.BooleanField(default=False)  # there are none because of a fault, which is in the log

    def __str__(self) -> str:
        return f"findings of {self.run}"


class ImportFindings(models.Model):
    """What the tables of an import show. Written and read by `analysis.import_findings`."""

    imported = models.OneToOneField(Import, on_delete=models.CASCADE, related_name="+")
    seal = models.CharField(max_length=64)  # of the rules and tables it was made from
    content = models.JSONField()  # analysis.import_findings.Conclusions
    made_at = models.DateTimeField()

    def __str__(self) -> str:
        return f"findings of {self.imported}"


class Review(models.Model):
    """A person confirmed or dismissed a finding."""

    class Verdict(models.TextChoices):
        CONFIRMED = "confirmed", "Confirmed"
        DISMISSED = "dismissed", "Dismissed"

    key = models.CharField(max_length=24)
    verdict = models.CharField(max_length=9, choices=Verdict.choices)
    reason = models.CharField(max_length=500, blank=True)
    by = models.ForeignKey(settings.AUTH_USER_MODEL, on_delete=models.SET_NULL, null=True, related_name="+")
    at = models.DateTimeField(auto_now=True)

    class Meta:
        abstract = True

    def __str__(self) -> str:
        return f"{self.key} {self.verdict}"


class FindingReview(Review):
    """Of a finding of a run: also that of the next run of the plan with the same key."""

    plan = models.ForeignKey(Plan, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(verdict__in=["confirmed", "dismissed"]), name="findingreview_known"
            ),
            models.UniqueConstraint(fields=["plan", "key"], name="findingreview_once_of_plan"),
        ]


class ImportFindingReview(Review):
    """Of a finding of an import."""

    imported = models.ForeignKey(Import, on_delete=models.CASCADE, related_name="+")

    class Meta:
        constraints = [
            models.CheckConstraint(
                condition=models.Q(verdict__in=["confirmed", "dismissed"]), name="importfindingreview_known"
            ),
            models.UniqueConstraint(fields=["imported", "key"], name="importfindingreview_once"),
        ]
