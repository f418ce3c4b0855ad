"""Addresses of the page Explore and of the comparisons that were saved."""

from django.urls import URLPattern, path

from webapp.screens.explore import embed, saved, share
from webapp.screens.explore.views import explore_file, explore_json, explore_page, explore_timeline

urlpatterns: list[URLPattern] = [
    path("explore/", explore_page, name="explore"),
    path("explore/timeline.json", explore_timeline, name="explore_timeline"),
    path("explore.csv", explore_file, {"ending": "csv"}, name="explore_csv"),
    path("explore.parquet", explore_file, {"ending": "parquet"}, name="explore_parquet"),
    path("explore.json", explore_json, name="explore_json"),
    path("comparisons/", saved.saved_list, name="saved_comparisons"),
    path("comparisons/save/", saved.save_action, name="save_comparison"),
    path("comparisons/<int:pk>/", saved.saved_page, name="saved_comparison"),
    path("comparisons/<int:pk>/change/", saved.change_action, name="change_comparison"),
    path("comparisons/<int:pk>/copy/", saved.copy_action, name="copy_comparison"),
    path("comparisons/<int:pk>/delete/", saved.delete_action, name="delete_comparison"),
    path("comparisons/<int:pk>/restore/", saved.restore_action, name="restore_comparison"),
    path("comparisons/<int:pk>/report/", share.report_page, name="comparison_report"),
    path("comparisons/<int:pk>/freeze/", share.freeze_action, name="freeze_comparison"),
    path("comparisons/<int:pk>/unfreeze/", share.unfreeze_action, name="unfreeze_comparison"),
    path("comparisons/<int:pk>/links/", share.create_link_action, name="create_comparison_link"),
    path("comparisons/<int:pk>/links/<int:link>/revoke/", share.revoke_link_action, name="revoke_comparison_link"),
    path("shared/<str:token>/chart.svg", embed.shared_chart, name="shared_chart"),
    path("shared/<str:token>/frame/", embed.shared_frame, name="shared_frame"),
    path("shared/<str:token>/", share.shared_page, name="shared_comparison"),
]
