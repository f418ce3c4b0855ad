"""Addresses of the pages of notices."""

from django.urls import URLPattern, path

from webapp.screens.notices.views import (
    add,
    change,
    delete,
    notice_page,
    notices_page,
    pause,
    renew,
    resume,
    secret_page,
    send_one_again,
    test,
)

urlpatterns: list[URLPattern] = [
    path("notices/", notices_page, name="notices"),
    path("notices/add/", add, name="add_notice"),
    path("notices/<int:pk>/", notice_page, name="notice"),
    path("notices/<int:pk>/change/", change, name="change_notice"),
    path("notices/<int:pk>/pause/", pause, name="pause_notice"),
    path("notices/<int:pk>/resume/", resume, name="resume_notice"),
    path("notices/<int:pk>/delete/", delete, name="delete_notice"),
    path("notices/<int:pk>/test/", test, name="test_notice"),
    path("notices/<int:pk>/secret/", secret_page, name="notice_secret"),
    path("notices/<int:pk>/secret/renew/", renew, name="renew_notice_secret"),
    path("notices/deliveries/<uuid:delivery>/again/", send_one_again, name="send_notice_again"),
]
