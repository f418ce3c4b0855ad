from importlib import import_module

from django.apps import AppConfig


class ResultsConfig(AppConfig):
    name = "webapp.results"

    def ready(self) -> None:
        maximum_of = import_module("webapp.results.speeds").maximum_of
        import_module("webapp.runs.dispatch.loads").maximum_wanted.connect(maximum_of)
