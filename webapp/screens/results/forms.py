"""The filters of the results table, as they stand in the address."""

from django import forms
from django.db.models import QuerySet

from webapp.hosts.models import Host, Target
from webapp.results.models import Result
from webapp.runs.models import Run

_SELECT = {"class": "form-select form-select-sm"}


class ResultFilterForm(forms.Form):
    run = forms.ModelChoiceField(
        Run.objects.none(), required=False, to_field_name="number", empty_label="All runs",
        widget=forms.Select(attrs=_SELECT),
    )  # fmt: skip
    host = forms.ModelChoiceField(
        Host.objects.none(), required=False, to_field_name="slug", empty_label="All hosts",
        widget=forms.Select(attrs=_SELECT),
    )  # fmt: skip
    target = forms.ModelChoiceField(
        Target.objects.none(), required=False, empty_label="All targets", widget=forms.Select(attrs=_SELECT)
    )
    direction = forms.ChoiceField(
        choices=[("", "Both"), ("read", "read"), ("write", "write")], required=False, widget=forms.Select(attrs=_SELECT)
    )

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        choices: dict[str, QuerySet[Run] | QuerySet[Host] | QuerySet[Target]] = {
            "run": Run.objects.order_by("-number"),
            "host": Host.objects.all(),
            "target": Target.objects.select_related("host"),
        }
        for name, queryset in choices.items():
            field = self.fields[name]
            if isinstance(field, forms.ModelChoiceField):
                field.queryset = queryset

    def results(self) -> QuerySet[Result]:
        """What the chosen run, host, target and direction leave."""
        results = Result.objects.select_related("run", "trial", "host", "target__host").defer("latency")
        if not self.is_valid():
            return results.none()
        chosen = {name: value for name, value in self.cleaned_data.items() if value}
        return results.filter(**chosen)
