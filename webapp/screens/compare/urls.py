"""Addresses of the page that compares, and of the comparisons that were saved."""

from django.urls import URLPattern, path

from webapp.screens.compare import saved
from webapp.screens.compare.export import compare_csv
from webapp.screens.compare.views import compare_page

urlpatterns: list[URLPattern] = [
    path("compare/", compare_page, name="compare"),
    path("compare.csv", compare_csv, name="compare_csv"),
    path("comparisons/", saved.saved_list, name="saved_comparisons"),
    path("comparisons/save/", saved.save_action, name="save_comparison"),
    path("comparisons/<int:pk>/", saved.saved_page, name="saved_comparison"),
    path("comparisons/<int:pk>/change/", saved.change_action, name="change_comparison"),
    path("comparisons/<int:pk>/copy/", saved.copy_action, name="copy_comparison"),
    path("comparisons/<int:pk>/delete/", saved.delete_action, name="delete_comparison"),
    path("comparisons/<int:pk>/restore/", saved.restore_action, name="restore_comparison"),
]
