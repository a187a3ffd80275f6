"""The X-ray of a study: a file below one folder, and never outside it."""

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import Final

from tabon.errors import BadInputError
from tabon.generation.images import encode_image
from tabon.generation.protocol import EncodedImage
from tabon.text.records import Query

MAX_SIDE: Final = 1024  # pixels of the longer side
LONGEST_NAME: Final = 1024
Note = Callable[[str], None]  # called with the reason why an image is not shown


@dataclass(frozen=True, slots=True)
class ImageFolder:
    """The folder that the `image` of a query is relative to."""

    root: Path

    def path_of(self, query: Query) -> Path | None:
        """Return a study's image file; None where it names none, or none that lies in the folder.

        Links are followed only where they stay inside.
        """
        name = query.facts.get("image")
        if not isinstance(name, str) or not _is_plain(name):
            return None
        try:
            path = (self.root / name).resolve(strict=True)
            inside = path.is_relative_to(self.root.resolve(strict=True))
            return path if inside and path.is_file() else None
        except (OSError, RuntimeError, ValueError):  # not there, a circle of links
            return None

    def read(self, query: Query) -> EncodedImage | None:
        """Return a study's image as a browser can show it; None where there is none.

        Raises:
            BadInputError: the file is not a whole image.
        """
        path = self.path_of(query)
        return None if path is None else encode_image(path, max_side=MAX_SIDE)


def open_folder(root: Path) -> ImageFolder:
    """Return a folder of images that is there."""
    if not root.is_dir():
        raise BadInputError(f"{root} is not a folder; give --images the folder of the images")
    return ImageFolder(root)


def _is_plain(name: str) -> bool:
    """Whether a name is a relative path that goes down only.

    >>> [_is_plain(name) for name in ("a/b.png", "../b.png", "/b.png", "a/../../b", "C:/b.png", "")]
    [True, False, False, False, False, False]
    """
    places = PurePosixPath(name), PureWindowsPath(name)
    return (
        0 < len(name) <= LONGEST_NAME
        and "\0" not in name
        and not any(path.is_absolute() or path.drive or ".." in path.parts for path in places)
    )
