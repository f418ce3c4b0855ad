"""Where address and token come from."""

from pathlib import Path

import pytest

from worker.client.configuration import Configuration, read_configuration
from worker.client.errors import UsageError

TOKEN = "secret-token"
GIVEN = {"SWEETSPOT_URL": "https://lab.example/", "SWEETSPOT_TOKEN": TOKEN, "XDG_CONFIG_HOME": "/nonexistent"}


def refused(environment: dict[str, str]) -> str:
    with pytest.raises(UsageError) as error:
        read_configuration(environment)
    assert TOKEN not in str(error.value)
    return str(error.value)


def a_file(folder: Path, text: str, mode: int = 0o600) -> dict[str, str]:
    path = folder / "sweetspot" / "config.toml"
    path.parent.mkdir(exist_ok=True)
    path.write_text(text)
    path.chmod(mode)
    return {"XDG_CONFIG_HOME": str(folder)}


def test_the_environment_comes_before_the_file_and_options_before_both(tmp_path: Path) -> None:
    kept = a_file(tmp_path, f'url = "https://kept.example"\ntoken = "{TOKEN}"\n')
    assert read_configuration(kept) == Configuration("https://kept.example", TOKEN, "")
    assert read_configuration(GIVEN | kept).url == "https://lab.example"
    assert read_configuration(GIVEN, url="https://other.example").url == "https://other.example"
    assert TOKEN not in repr(read_configuration(kept))
    assert read_configuration({name: text for name, text in GIVEN.items() if "XDG" not in name}).token == TOKEN


def test_a_file_that_others_can_read_is_refused(tmp_path: Path) -> None:
    words = refused(a_file(tmp_path, f'token = "{TOKEN}"', mode=0o640))
    assert words.endswith(f"Run: chmod 600 {tmp_path}/sweetspot/config.toml")


def test_what_is_wrong_is_said_without_the_token(tmp_path: Path) -> None:
    assert refused({"XDG_CONFIG_HOME": "/nonexistent"}).startswith("The address of the server is missing.")
    assert "cannot be read" in refused(GIVEN | {"SWEETSPOT_CONFIG": f"{tmp_path}/none.toml"})
    assert "API token is missing" in refused(GIVEN | {"SWEETSPOT_TOKEN": ""})
    assert "invalid character" in refused(GIVEN | {"SWEETSPOT_TOKEN": f"{TOKEN}\nx"})
    assert "is not valid TOML" in refused(a_file(tmp_path, f"token = {TOKEN}\n"))
    assert "no setting `tokn`" in refused(a_file(tmp_path, f'tokn = "{TOKEN}"\n'))
    assert "no CA file" in refused(GIVEN | {"SWEETSPOT_CA_FILE": "/nonexistent/ca.crt"})


def test_a_token_is_not_sent_without_encryption_except_on_loopback() -> None:
    assert "without encryption" in refused(GIVEN | {"SWEETSPOT_URL": "http://lab.example"})
    assert read_configuration(GIVEN | {"SWEETSPOT_URL": "http://127.0.0.1:8000"}).url == "http://127.0.0.1:8000"
    allowed = GIVEN | {"SWEETSPOT_URL": "http://lab.example", "SWEETSPOT_ALLOW_HTTP": "1"}
    assert read_configuration(allowed).url == "http://lab.example"
    assert "is not valid" in refused(GIVEN | {"SWEETSPOT_URL": f"https://lab.example/?token={TOKEN}"})
    assert "must not contain a password" in refused(GIVEN | {"SWEETSPOT_URL": f"https://a:{TOKEN}@lab.example"})
