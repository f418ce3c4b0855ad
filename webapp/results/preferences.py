"""What a person wants to see. It is theirs alone and changes nothing for anybody else, so it leaves no audit entry."""

from collections.abc import Sequence

from webapp.core.models import User
from webapp.results.models import ColumnChoice


def remembered_columns(user: User) -> tuple[str, ...]:
    """Keys of columns; none where the person never chose."""
    columns = ColumnChoice.objects.filter(user=user).values_list("columns", flat=True).first()
    return tuple(str(column) for column in columns or ())


def remember_columns(*, user: User, columns: Sequence[str]) -> None:
    """None brings the usual ones back."""
    if columns:
        ColumnChoice.objects.update_or_create(user=user, defaults={"columns": list(columns)})
    else:
        ColumnChoice.objects.filter(user=user).delete()
