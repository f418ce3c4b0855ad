"""MkDocs' hook: adds the generated pages, and puts the parts into reading order."""

from pathlib import PurePosixPath

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import File, Files

from dev.docs.pages import generated_pages
from worker import __version__

PARTS = {"tutorial": "Tutorial", "how-to": "How-to", "reference": "Reference", "understanding": "Understanding"}
FOLDERS = {"how-to/plans": "The built-in plans", "understanding/decisions": "Decisions"}


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    config.extra["release"] = __version__
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    for path, generated in generated_pages().items():
        own = files.get_file_from_path(path)
        if own:
            files.remove(own)
        text = f"{own.content_string}\n" if own else ""
        files.append(File.generated(config, path, content=text + generated))
    config.nav = navigation([file.src_uri for file in files.documentation_pages()])
    return files


def navigation(paths: list[str]) -> list[object]:
    """The home page, then each part: its index page, its pages, its folders. Other pages are about the project."""
    entries: list[object] = ["index.md"]
    for part, title in PARTS.items():
        folders = [{FOLDERS[folder]: _pages(paths, folder)} for folder in FOLDERS if folder.startswith(f"{part}/")]
        entries.append({title: [*_pages(paths, part), *folders]})
    project = [path for path in _pages(paths, ".") if path != "index.md"]
    return [*entries, {"Project": project}]


def _pages(paths: list[str], folder: str) -> list[str]:
    found = [path for path in paths if str(PurePosixPath(path).parent) == folder]
    return sorted(found, key=lambda path: (not path.endswith("index.md"), path))
