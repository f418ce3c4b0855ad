"""A person's display preferences. They affect nobody else, so changes are not in the audit log."""

from collections.abc import Sequence

from webapp.core.models import User
from webapp.results.models import ColumnChoice


def remembered_columns(user: User) -> tuple[str, ...]:
    """Keys of columns; empty if the person never chose."""
    columns = ColumnChoice.objects.filter(user=user).values_list("columns", flat=True).first()
    return tuple(str(column) for column in columns or ())


def remember_columns(*, user: User, columns: Sequence[str]) -> None:
    """An empty choice restores the default ones."""
    if columns:
        ColumnChoice.objects.update_or_create(user=user, defaults={"columns": list(columns)})
    else:
        ColumnChoice.objects.filter(user=user).delete()
