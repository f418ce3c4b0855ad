"""Django's database sessions, of which a copy of the database reveals nothing (SESSION_ENGINE).

The row holds the SHA-256 of the key in the browser's cookie, so no row gives a session. The data are encrypted (Fernet)
with a key derived from the settings' secret key: for a moment they contain the secret of a set-password link.
"""

from typing import Any

from cryptography.fernet import Fernet, InvalidToken
from django.conf import settings
from django.contrib.sessions.backends import db
from django.contrib.sessions.models import Session
from django.utils import timezone

from webapp.core.tokens import fernet, hash_token

COLUMN_LENGTH = 40  # of Django's table: 160 bits of the hash


def stored_key(key: str) -> str:
    """The key as its row holds it."""
    return hash_token(key)[:COLUMN_LENGTH]


class SessionStore(db.SessionStore):
    def _get_session_from_db(self) -> Session | None:
        rows = Session.objects.filter(session_key=stored_key(self.session_key or ""), expire_date__gt=timezone.now())
        session = rows.first()
        if session is None:
            self._session_key = None
        return session

    def exists(self, session_key: str) -> bool:
        return super().exists(stored_key(session_key))

    def create_model_instance(self, data: dict[str, Any]) -> Session:
        row = super().create_model_instance(data)
        return Session(
            session_key=stored_key(row.session_key), session_data=row.session_data, expire_date=row.expire_date
        )

    def delete(self, session_key: str | None = None) -> None:
        key = session_key or self.session_key
        if key:
            Session.objects.filter(session_key=stored_key(key)).delete()

    def encode(self, session_dict: dict[str, Any]) -> str:
        return _fernet().encrypt(self.serializer().dumps(session_dict)).decode()

    def decode(self, session_data: bytes | str) -> dict[str, Any]:
        """{} for data of another secret key: the person logs in again."""
        try:
            content: dict[str, Any] = self.serializer().loads(_fernet().decrypt(session_data))
        except InvalidToken:
            return {}
        return content


def _fernet() -> Fernet:
    return fernet(settings.SECRET_KEY, purpose=b"sweetspot session")
