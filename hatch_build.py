"""What pyproject.toml leaves to the build: README for a package index, and the project's addresses."""

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

RELATIVE_LINK = re.compile(r"\[([^]]+)\]\((?!https?://|#)([^)\s]+)\)")


def readme(text: str, repository: str) -> str:
    """Return a page whose links work outside the repository; without an address they become plain words."""
    return RELATIVE_LINK.sub(rf"[\1]({repository}/blob/HEAD/\2)" if repository else r"\1", text)


class IndexMetadata(MetadataHookInterface):
    """Writes README's relative links in full, from the one address in pyproject.toml."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Set the fields that pyproject.toml calls dynamic."""
        repository = self.config["repository"].rstrip("/")
        text = readme((Path(self.root) / "README.md").read_text(encoding="utf-8"), repository)
        metadata["readme"] = {"content-type": "text/markdown", "text": text}
        if repository:
            changes = f"{repository}/blob/HEAD/CHANGELOG.md"
            metadata["urls"] = {"Source": repository, "Issues": f"{repository}/issues", "Changelog": changes}
