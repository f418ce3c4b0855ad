"""People for tests."""

from webapp.core.models import Role, User

PASSWORD = "correct horse battery staple"


def person(role: Role) -> User:
    """The one person of that role, made if not there."""
    found = User.objects.filter(username=role.value).first()
    return found or User.objects.create_user(username=role.value, password=PASSWORD, role=role)


def operator() -> User:
    return person(Role.OPERATOR)
