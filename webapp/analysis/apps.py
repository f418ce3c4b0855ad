from importlib import import_module
from uuid import UUID

from django.apps import AppConfig
from django.db.models.signals import post_migrate


class AnalysisConfig(AppConfig):
    name = "webapp.analysis"
    label = "compare"  # of its tables

    def ready(self) -> None:
        import_module("webapp.analysis.services")  # importing it listens to `lost_rights`
        import_module("webapp.results.rounds").repeats_to_decide.connect(_decide_repeats)
        import_module("webapp.results.rounds").time_to_check.connect(_end_exploration)
        import_module("webapp.runs.dispatch.ending").batches_ended.connect(_add_next_batches)
        post_migrate.connect(_watch_changes, sender=self)


def _decide_repeats(run_id: UUID, host_id: UUID, document: object, **_: object) -> None:
    """Imports the statistics only here: they would take 60 MB in each process."""
    import_module("webapp.analysis.deciding").decide_repeats(run_id, host_id, document)


def _add_next_batches(run: object, **_: object) -> bool:
    """Likewise."""
    return bool(import_module("webapp.analysis.searching").add_next_batches(run))


def _end_exploration(run_id: UUID, host_id: UUID, **_: object) -> None:
    """Likewise."""
    import_module("webapp.analysis.searching").end_exploration(run_id, host_id)


def _watch_changes(**_: object) -> None:
    """Now all apps have their tables."""
    changes, seals = import_module("webapp.core.changes"), import_module("webapp.analysis.seals")
    changes.install(seals.WATCHED)
