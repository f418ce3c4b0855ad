"""People with a password."""

import itertools

from webapp.core.models import Role, User

PASSWORD = "correct horse battery staple"
_numbers = itertools.count(1)


def a_user(username: str = "", role: Role = Role.OPERATOR) -> User:
    return User.objects.create_user(username or f"user{next(_numbers)}", password=PASSWORD, role=role)


def person(role: Role) -> User:
    """The one person of that role, made if not there."""
    return User.objects.filter(username=role.value).first() or a_user(role.value, role)


def operator() -> User:
    return person(Role.OPERATOR)
