"""Address, token and CA file: from options, the environment, or a file that only its owner may read."""

import os
import re
import stat
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from .errors import UsageError

URL, TOKEN, CA_FILE, FILE = "SWEETSPOT_URL", "SWEETSPOT_TOKEN", "SWEETSPOT_CA_FILE", "SWEETSPOT_CONFIG"
ALLOW_HTTP = "SWEETSPOT_ALLOW_HTTP"
_TOKEN = re.compile(r"[!-~]{1,500}", re.ASCII)
_LOOPBACK = ("localhost", "127.0.0.1", "::1")
BAD_URL = "The address of the server is not valid. Write for example https://sweetspot.example."
_KEYS = ("url", "token", "ca_file", "allow_http")


@dataclass(frozen=True)
class Configuration:
    url: str  # without a slash at the end
    token: str = field(repr=False)
    ca_file: str  # "" for the certificates of the system


def default_file(environment: Mapping[str, str]) -> Path:
    folder = environment.get("XDG_CONFIG_HOME") or _home(environment) / ".config"
    return Path(folder) / "sweetspot" / "config.toml"


def _home(environment: Mapping[str, str]) -> Path:
    """A container's user may have none."""
    try:
        return Path(environment["HOME"]) if "HOME" in environment else Path.home()
    except RuntimeError:
        return Path("/")


def read_configuration(environment: Mapping[str, str], *, url: str = "", ca_file: str = "") -> Configuration:
    """Options first, then the environment, then the file. Raises UsageError."""
    path = Path(environment.get(FILE) or default_file(environment))
    of_file = _read_file(path, optional=FILE not in environment)
    token = environment.get(TOKEN, "").strip() or of_file.get("token", "")
    allow_http = (environment.get(ALLOW_HTTP) or of_file.get("allow_http", "")) in ("1", "true", "True")
    return Configuration(
        url=_checked_url(url or environment.get(URL) or of_file.get("url", ""), path, allow_http=allow_http),
        token=_checked_token(token, path),
        ca_file=_checked_ca_file(ca_file or environment.get(CA_FILE) or of_file.get("ca_file", "")),
    )


def _read_file(path: Path, *, optional: bool) -> dict[str, str]:
    try:
        with path.open("rb") as file:
            _check_mode(path, os.fstat(file.fileno()).st_mode)
            values = tomllib.load(file)
    except OSError as error:
        if optional and isinstance(error, FileNotFoundError | NotADirectoryError | PermissionError):
            return {}
        raise UsageError(f"{path} cannot be read: {error.strerror}.") from error
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        # not the parser's message: it may quote the line of the token
        raise UsageError(
            f'{path} is not valid TOML. It has lines such as url = "https://sweetspot.example".'
        ) from error
    unknown = [key for key in values if key not in _KEYS]
    if unknown:
        raise UsageError(f"{path}: there is no setting `{unknown[0]}`. Use {', '.join(_KEYS)}.")
    return {key: str(value) for key, value in values.items()}


def _check_mode(path: Path, mode: int) -> None:
    if os.name == "posix" and stat.S_IMODE(mode) & 0o077:
        raise UsageError(f"{path} can be read by others, and it may contain a token. Run: chmod 600 {path}")


def _checked_url(url: str, path: Path, *, allow_http: bool) -> str:
    if not url:
        raise UsageError(f'The address of the server is missing. Set {URL}, or write url = "https://…" to {path}.')
    try:
        parts = urlsplit(url)
        host, _ = parts.hostname, parts.port
    except ValueError as error:
        raise UsageError(BAD_URL) from error
    if parts.username or parts.password:
        raise UsageError(f"The address of the server must not contain a password. Use {TOKEN} for the token.")
    if parts.scheme not in ("http", "https") or not host or parts.query or parts.fragment:
        raise UsageError(BAD_URL)
    if parts.scheme == "http" and host not in _LOOPBACK and not allow_http:
        raise UsageError(
            f"`{url}` would send the token without encryption. Use https://, or set {ALLOW_HTTP}=1 in a safe network."
        )
    return url.rstrip("/")


def _checked_token(token: str, path: Path) -> str:
    if not token:
        raise UsageError(
            f'The API token is missing. Create one on the page Account and set {TOKEN}, or write token = "…" to {path}.'
        )
    if not _TOKEN.fullmatch(token):
        raise UsageError("The API token contains a blank or another invalid character. Copy it again.")
    return token


def _checked_ca_file(ca_file: str) -> str:
    if ca_file and not Path(ca_file).is_file():
        raise UsageError(f"There is no CA file {ca_file}.")
    return ca_file
