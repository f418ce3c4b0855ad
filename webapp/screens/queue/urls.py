"""Addresses of the queue."""

from django.urls import URLPattern, path

from webapp.screens.runs.action_views import move_run, queue_page

urlpatterns: list[URLPattern] = [
    path("queue/", queue_page, name="queue"),
    path("queue/<int:number>/move/", move_run, name="move_run"),
]
