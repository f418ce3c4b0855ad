"""`manage.py thin_samples`: thin old samples, as beat does once a day."""

from typing import Any

from django.core.management.base import BaseCommand

from webapp.results.retention import delete_orphans, thin_samples


class Command(BaseCommand):
    help = "Keep about one sample in ten of runs that ended more than SWEETSPOT_SAMPLE_DAYS ago."

    def handle(self, *_: Any, **__: Any) -> None:
        self.stdout.write(f"{thin_samples()} samples thinned out, {delete_orphans()} unused configurations deleted.")
