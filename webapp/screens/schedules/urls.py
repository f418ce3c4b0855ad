"""Addresses of the pages of schedules."""

from django.urls import URLPattern, path

from webapp.screens.schedules import views as actions
from webapp.screens.schedules.calendar_view import calendar_page
from webapp.screens.schedules.form_views import edit_schedule, new_schedule, preview_schedule
from webapp.screens.schedules.views import schedule_page, schedules_page

urlpatterns: list[URLPattern] = [
    path("schedules/", schedules_page, name="schedules"),
    path("schedules/calendar/", calendar_page, name="schedule_calendar"),
    path("schedules/new/", new_schedule, name="new_schedule"),
    path("schedules/preview/", preview_schedule, name="preview_schedule"),
    path("schedules/<int:pk>/", schedule_page, name="schedule"),
    path("schedules/<int:pk>/edit/", edit_schedule, name="edit_schedule"),
    path("schedules/<int:pk>/on/", actions.turn_on, name="schedule_on"),
    path("schedules/<int:pk>/off/", actions.turn_off, name="schedule_off"),
    path("schedules/<int:pk>/pause/", actions.pause, name="pause_schedule"),
    path("schedules/<int:pk>/resume/", actions.resume, name="resume_schedule"),
    path("schedules/<int:pk>/skip-next/", actions.skip_next_due, name="skip_next_due"),
    path("schedules/<int:pk>/run/", actions.run_now, name="schedule_run_now"),
    path("schedules/<int:pk>/delete/", actions.delete, name="delete_schedule"),
    path("schedules/<int:pk>/restore/", actions.restore, name="restore_schedule"),
    path("schedules/<int:pk>/take-over/", actions.take_over, name="take_over_schedule"),
    path("schedules/<int:pk>/arm/", actions.arm, name="arm_schedule"),
    path("schedules/<int:pk>/disarm/", actions.disarm, name="disarm_schedule"),
    path("schedules/<int:pk>/occurrences/<uuid:occurrence>/skip/", actions.skip, name="skip_occurrence"),
]
