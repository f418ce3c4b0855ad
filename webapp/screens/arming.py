"""The targets of a new run, and the drives whose serial numbers a person must type before they are overwritten."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass

from django import forms
from django.db.models import QuerySet

from webapp.hosts.inventory.store import contents
from webapp.hosts.models import HostState, Target


@dataclass(frozen=True)
class DriveToArm:
    target: Target
    content: str  # its current content, in words
    typed: str = ""  # typed serial number in a refused form
    problem: str = ""  # problem of the typed serial number


def drives_to_arm(targets: Collection[Target], typed: Sequence[str] = ()) -> list[DriveToArm]:
    """The hosts of `targets` must be fetched with them. `typed`: serial numbers of a refused form, one per drive."""
    contents_by_target = contents(targets)
    serials = [*typed, *[""] * len(targets)]
    return [
        DriveToArm(target, contents_by_target[target.pk], serial, _problem(target, serial) if typed else "")
        for target, serial in zip(targets, serials, strict=False)
    ]


def _problem(target: Target, serial: str) -> str:
    if serial == target.arming_serial:
        return ""
    what = "serial" if target.serial else "id"
    return f"This is not the {what} of {target}. Type {target.arming_serial}."


# The targets of a new run, and the serial numbers typed for overwritten ones.


def usable_targets() -> QuerySet[Target]:
    """Targets that are available and in their host's policy; slots only as drives of their pool."""
    usable = Target.objects.filter(in_policy=True, present=True, host__state=HostState.ACTIVE)
    return usable.exclude(kind="slot").select_related("host")


class TargetsForm(forms.Form):
    """`?target=<id>&target=<id>`: the targets of the preview."""

    target = forms.ModelMultipleChoiceField(queryset=Target.objects.none(), required=False)

    def __init__(self, *args: object, **kwargs: object) -> None:
        super().__init__(*args, **kwargs)  # type: ignore[arg-type]
        field = self.fields["target"]
        if isinstance(field, forms.ModelMultipleChoiceField):
            field.queryset = usable_targets()


class StartForm(TargetsForm):
    """`serial` occurs once per overwritten device, in any order."""

    note = forms.CharField(required=False, max_length=2000)
    seed = forms.IntegerField(required=False, min_value=0, max_value=2**53 - 1)

    def serials(self) -> tuple[str, ...]:
        typed: list[str] = self.data.getlist("serial") if hasattr(self.data, "getlist") else []
        return tuple(text.strip() for text in typed if text.strip())
