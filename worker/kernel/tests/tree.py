"""A sysfs of files."""

from pathlib import Path


class Tree:
    def __init__(self, root: Path) -> None:
        self.sys = root / "sys"
        for folder in ("class/block", "dev/block"):
            (self.sys / folder).mkdir(parents=True)

    def add(self, name: str, place: str, dev: str, **attributes: str) -> Path:
        node = self.sys / "devices" / place / name
        for path in ("holders", "slaves", "queue"):
            (node / path).mkdir(parents=True, exist_ok=True)
        (node / "dev").write_text(dev + "\n")
        for key, value in attributes.items():
            file = node / key.replace("__", "/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(value + "\n")
        (self.sys / "class/block" / name).symlink_to(node)
        (self.sys / "dev/block" / dev).symlink_to(node)
        return node

    def put_on(self, upper: str, lower: str) -> None:
        (self.sys / f"class/block/{lower}/holders/{upper}").symlink_to(self.sys / f"class/block/{upper}")
        (self.sys / f"class/block/{upper}/slaves/{lower}").symlink_to(self.sys / f"class/block/{lower}")
