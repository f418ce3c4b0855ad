"""When the server's certificates end (SWEETSPOT_CERTIFICATES)."""

import logging
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

from cryptography import x509
from django.conf import settings

log = logging.getLogger(__name__)

# A certificate of the private authority is renewed thirty days before its end.
WARN = timedelta(days=21)


def ends() -> Iterator[tuple[str, datetime]]:
    """Each file with the end of its first certificate. The log names files that cannot be read."""
    for path in settings.CERTIFICATES:
        try:
            yield path, x509.load_pem_x509_certificate(Path(path).read_bytes()).not_valid_after_utc
        except (OSError, ValueError) as error:
            log.warning("The certificate %s cannot be read: %s", path, error)


def warnings() -> list[str]:
    """A sentence for each certificate that has ended or will end soon, and for each file that cannot be read."""
    end_by_path = dict(ends())
    soon = datetime.now(UTC) + WARN
    late = [
        f"The certificate {path} expires on {end:%Y-%m-%d}. Renew it."
        for path, end in end_by_path.items()
        if end < soon
    ]
    unread = [f"The certificate {path} cannot be read." for path in settings.CERTIFICATES if path not in end_by_path]
    return late + unread
