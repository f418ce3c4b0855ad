"""Addresses of the pages of hosts."""

from django.urls import URLPattern, path

from webapp.screens.hosts import groups, manage, target_page
from webapp.screens.hosts.differences import host_differences
from webapp.screens.hosts.views import host_page, hosts_page, worker_log

urlpatterns: list[URLPattern] = [
    path("hosts/", hosts_page, name="hosts"),
    path("hosts/add/", manage.add_host, name="add_host"),
    path("hosts/add/line/", manage.make_enrolment, name="make_enrolment"),
    path("hosts/add/<slug:reference>/", manage.new_host_line, name="new_host_line"),
    path("hosts/add/<slug:reference>/state/", manage.enrolment_state, name="enrolment_state"),
    path("hosts/add/<slug:reference>/withdraw/", manage.withdraw, name="withdraw_enrolment"),
    path("groups/", groups.groups_page, name="host_groups"),
    path("groups/new/", groups.new_group, name="new_host_group"),
    path("groups/<slug:slug>/", groups.group, name="host_group"),
    path("groups/<slug:slug>/delete/", groups.delete, name="delete_host_group"),
    path("hosts/<slug:slug>/", host_page, name="host"),
    path("hosts/<slug:slug>/log/", worker_log, name="host_log"),
    path("hosts/<slug:slug>/targets/<str:target>/", target_page.target_page, name="host_target"),
    path("hosts/<slug:slug>/targets/<str:target>/purge/", target_page.purge, name="host_purge"),
    path("hosts/<slug:slug>/targets/<str:target>/purge/<int:action>/stop/", target_page.stop, name="host_purge_stop"),
    path("hosts/<slug:slug>/targets/<str:target>/setting/", target_page.setting, name="host_setting"),
    path("hosts/<slug:slug>/targets/<str:target>/endurance/", target_page.endurance, name="host_endurance"),
    path("hosts/<slug:slug>/differences/", host_differences, name="host_differences"),
    path("hosts/<slug:slug>/manage/", manage.manage_page, name="host_manage"),
    path("hosts/<slug:slug>/rename/", manage.rename, name="host_rename"),
    path("hosts/<slug:slug>/maintenance/", manage.maintenance, name="host_maintenance"),
    path("hosts/<slug:slug>/inventory/", manage.inventory, name="host_inventory"),
    path("hosts/<slug:slug>/maintenance/end/", manage.maintenance_end, name="host_maintenance_end"),
    path("hosts/<slug:slug>/windows/weekly/", manage.add_weekly, name="host_window_weekly"),
    path("hosts/<slug:slug>/windows/single/", manage.add_single, name="host_window_single"),
    path("hosts/<slug:slug>/windows/<int:window_id>/delete/", manage.delete, name="host_window_delete"),
    path("hosts/<slug:slug>/rotate/", manage.rotate, name="host_rotate"),
    path("hosts/<slug:slug>/revoke/", manage.revoke, name="host_revoke"),
    path("hosts/<slug:slug>/remove/", manage.remove, name="host_remove"),
    path("hosts/<slug:slug>/bring-back/", manage.bring_back_host, name="host_bring_back"),
]
