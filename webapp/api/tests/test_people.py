"""People over HTTP, against the real database."""

import pytest

from webapp.api.tests.clients import caller
from webapp.core.models import ApiToken, Role, User
from webapp.core.services import create_api_token

pytestmark = pytest.mark.django_db


def test_a_person_is_invited_changed_switched_off_and_removed() -> None:
    admin = caller(Role.ADMIN)
    status, made = admin("post", "people", {"username": "olga", "role": "viewer"})
    assert (status, made["username"], made["has_password"]) == (201, "olga", False)
    assert "/set-password/" in made["password_link"]
    path = f"people/{made['id']}"
    assert admin("post", f"{path}/role", {"role": "operator"})[1]["role"] == "operator"
    assert admin("post", f"{path}/deactivate", {})[1]["is_active"] is False
    assert admin("post", f"{path}/reactivate")[1]["is_active"] is True
    assert admin("post", f"{path}/password-link")[1]["password_link"] != made["password_link"]
    assert admin("post", f"{path}/anonymise", {"confirm": "olga"})[1]["code"] == "not_left"
    assert admin("delete", path, {})[1]["left_at"]
    assert [one["username"] for one in admin("get", "people")[1]["items"]] == ["admin-person"]
    assert [one["username"] for one in admin("get", "people?left=true")[1]["items"]] == ["olga"]
    assert admin("post", f"{path}/anonymise", {"confirm": "x"})[1]["code"] == "confirmation_wrong"
    assert admin("post", f"{path}/anonymise", {"confirm": "olga"})[1]["username"] == f"former-person-{made['id']}"
    assert admin("post", "people", {"username": "a b"})[1]["code"] == "username_refused"
    assert admin("get", "people/999")[0] == 404


def test_an_acknowledgement_is_true_or_false_and_nothing_like_it() -> None:
    admin = caller(Role.ADMIN)
    person = admin("post", "people", {"username": "mia"})[1]
    status, refused = admin("post", f"people/{person['id']}/deactivate", {"acknowledged": 1})
    assert (status, refused["message"]) == (422, "body.acknowledged: Input should be a valid boolean")


def test_an_admin_permits_the_connection_of_an_external_log_in() -> None:
    admin = caller(Role.ADMIN)
    made = admin("post", "people", {"username": "olga"})[1]
    path = f"people/{made['id']}"
    assert (made["has_external_login"], made["may_connect"]) == (False, False)
    for _ in range(2):
        status, olga = admin("post", f"{path}/connect-external-login")
        assert (status, olga["may_connect"]) == (200, True)
    User.objects.filter(username="olga").update(external_id="hash", may_connect=False)
    assert admin("get", path)[1]["has_external_login"] is True
    assert admin("post", f"{path}/connect-external-login")[1]["code"] == "already_connected"
    admin("post", f"{path}/deactivate", {})
    assert admin("post", f"{path}/connect-external-login")[1]["code"] == "account_disabled"


def test_an_admin_revokes_an_api_token_of_a_person() -> None:
    admin = caller(Role.ADMIN)
    olga, mia = (admin("post", "people", {"username": name})[1]["id"] for name in ("olga", "mia"))
    create_api_token(user=User.objects.get(pk=olga), name="notebook")
    (token,) = admin("get", f"people/{olga}/tokens")[1]["items"]
    assert (token["name"], token["may_arm"], token["last_used_at"]) == ("notebook", False, None)
    assert admin("delete", f"people/{mia}/tokens/{token['id']}")[0] == 404
    for _ in range(2):
        assert admin("delete", f"people/{olga}/tokens/{token['id']}")[0] == 204
    assert admin("get", f"people/{olga}/tokens")[1]["count"] == 0
    assert ApiToken.objects.get(pk=token["id"]).revoked_at
