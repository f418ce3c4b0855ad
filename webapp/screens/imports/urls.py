"""Addresses of the pages of imports."""

from django.urls import URLPattern, path

from webapp.screens.imports.upload_views import (
    add_import_files,
    begin_import_action,
    end_import_action,
    preview_import_columns,
    preview_import_labels,
    undo_import_action,
)
from webapp.screens.imports.views import (
    enter_values_action,
    import_page,
    import_test_page,
    imports_page,
    references_page,
    review_action,
)

urlpatterns: list[URLPattern] = [
    path("imports/", imports_page, name="imports"),
    path("references/", references_page, name="references"),
    path("imports/new/", begin_import_action, name="begin_import"),
    path("imports/values/", enter_values_action, name="enter_values"),
    path("imports/labels/", preview_import_labels, name="preview_import_labels"),
    path("imports/columns/", preview_import_columns, name="preview_import_columns"),
    path("imports/<int:number>/", import_page, name="import"),
    path("imports/<int:number>/tests/<int:test>/", import_test_page, name="import_test"),
    path("imports/<int:number>/files/", add_import_files, name="add_import_files"),
    path("imports/<int:number>/end/", end_import_action, name="end_import"),
    path("imports/<int:number>/findings/<slug:key>/review/", review_action, name="review_import_finding"),
    path("imports/<int:number>/undo/", undo_import_action, name="undo_import"),
]
