"""Addresses of the pages of people and of one's own account."""

from django.urls import URLPattern, path

from webapp.screens.people.account import (
    FromProvider,
    SetPasswordView,
    ToProvider,
    account_page,
    change_email,
    change_password,
    create_token,
    new_token,
    revoke_token,
)
from webapp.screens.people.audit import audit_page
from webapp.screens.people.views import (
    add_person,
    anonymise,
    change_role,
    connect,
    deactivate,
    password_link,
    people_page,
    person_page,
    reactivate,
    remove,
    reset_password,
    revoke_persons_token,
)

urlpatterns: list[URLPattern] = [
    path("login/oidc/", ToProvider.as_view(), name="oidc_login"),
    path("login/oidc/callback/", FromProvider.as_view(), name="oidc_callback"),
    path("people/", people_page, name="people"),
    path("people/add/", add_person, name="add_person"),
    path("people/<int:pk>/", person_page, name="person"),
    path("people/<int:pk>/role/", change_role, name="change_role"),
    path("people/<int:pk>/deactivate/", deactivate, name="deactivate_person"),
    path("people/<int:pk>/reactivate/", reactivate, name="reactivate_person"),
    path("people/<int:pk>/remove/", remove, name="remove_person"),
    path("people/<int:pk>/anonymise/", anonymise, name="anonymise_person"),
    path("people/<int:pk>/password/", reset_password, name="reset_password"),
    path("people/<int:pk>/password/link/", password_link, name="password_link"),
    path("people/<int:pk>/connect/", connect, name="connect_person"),
    path("people/<int:pk>/tokens/<uuid:token>/revoke/", revoke_persons_token, name="revoke_persons_token"),
    path("audit/", audit_page, name="audit"),
    path("account/", account_page, name="account"),
    path("account/password/", change_password, name="change_password"),
    path("account/email/", change_email, name="change_email"),
    path("account/tokens/", create_token, name="create_token"),
    path("account/tokens/new/", new_token, name="new_token"),
    path("account/tokens/<uuid:token>/revoke/", revoke_token, name="revoke_token"),
    path("set-password/<uidb64>/<token>/", SetPasswordView.as_view(), name="set_password"),
]
