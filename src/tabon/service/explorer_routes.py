"""The explorer's routes: the page's own files, the list of studies, one study and its image.

Studies are worked out when they are asked for, one at a time on a thread of
their own, with a selector of their own (see `explorer_of`): neither the event
loop nor the worker of the other routes waits for them. What was asked for
last is kept as bytes.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache
from typing import TYPE_CHECKING, Annotated, Any, Final, TypeVar

from tabon.errors import BadInputError, ServiceError
from tabon.generation.protocol import EncodedImage
from tabon.service.app import RouteModule
from tabon.service.explorer import Page, Studies, overview_record, read_page, study_record
from tabon.service.explorer.records import as_json
from tabon.service.parsing import service_error
from tabon.service.schemas import responses

if TYPE_CHECKING:
    from fastapi import FastAPI

STUDIES_KEPT: Final = 64
IMAGES_KEPT: Final = 16
WAITING: Final = 64  # requests that wait for the thread
SECONDS: Final = 30.0  # until a request is told to come again; the work goes on
PAGE_POLICY: Final = (
    "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' blob: data:; "
    "connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
NO_STORE: Final = {"Cache-Control": "no-store"}
OVERVIEW: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["notice", "title", "signature", "bank", "score", "flag_kinds", "map", "studies"],
    "properties": {
        "notice": {"type": "string"},
        "title": {"type": "string"},
        "signature": {"type": "string"},
        "bank": {"type": "object", "required": ["transitions", "patients", "sha256"]},
        "score": {"type": ["string", "null"]},
        "flag_kinds": {"type": "array", "items": {"type": "string"}},
        "map": {"type": "object"},
        "studies": {"type": "array", "items": {"type": "object", "required": ["number", "id", "selected"]}},
    },
}
STUDY: Final[dict[str, Any]] = {
    "type": "object",
    "required": ["number", "id", "selected", "notes", "prior", "reference", "drafts", "map", "image"],
    "properties": {
        "number": {"type": "integer", "minimum": 0},
        "id": {"type": "string"},
        "selected": {"type": ["integer", "null"]},
        "notes": {"type": "array", "items": {"type": "string"}},
        "prior": {"type": "object", "required": ["findings", "impression", "other"]},
        "reference": {"type": ["object", "null"]},
        "drafts": {
            "type": "array",
            "items": {
                "type": "object",
                "required": ["number", "rank", "total", "report", "flags"],
            },
        },
        "map": {"type": "object"},
        "image": {"type": ["string", "null"]},
    },
}
IMAGE: Final[dict[int | str, Any]] = {
    200: {
        "description": "Answered",
        "content": {
            kind: {"schema": {"type": "string", "format": "binary"}} for kind in ("image/png", "image/jpeg")
        },
    }
}
T = TypeVar("T")


def explorer_module(studies: Studies, page: Page | None = None) -> RouteModule:
    """Return the route module that adds the explorer of these studies; the page's files are read now."""
    shown, study_cache = read_page() if page is None else page, StudyCache(studies)

    def add(app: "FastAPI") -> None:
        _add_page(app, shown)
        _add_data(app, study_cache)

    return add


class StudyCache:
    """Works studies out, one at a time, and keeps what was asked for last."""

    def __init__(self, studies: Studies) -> None:
        """Sit down before some studies."""
        self.studies = studies
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="tabon-explorer")
        self._waiting = 0
        self.overview: Callable[[], str] = lru_cache(1)(self._overview)
        self.study: Callable[[int], str] = lru_cache(STUDIES_KEPT)(self._study)
        self.image: Callable[[int], EncodedImage | None] = lru_cache(IMAGES_KEPT)(self._image)

    async def ask(self, work: Callable[[], T]) -> T:
        """Wait for a piece of work, but not for ever."""
        if self._waiting >= WAITING:
            raise ServiceError(503, "too many studies are asked for", "try again later", retry_after=2)
        self._waiting += 1
        try:
            loop = asyncio.get_running_loop()
            return await asyncio.wait_for(loop.run_in_executor(self._pool, work), SECONDS)
        except TimeoutError:
            raise ServiceError(
                503, "the studies are still being worked out", "try again later", retry_after=5
            ) from None
        except Exception as error:
            raise service_error(error) from error
        finally:
            self._waiting -= 1

    def known(self, number: int) -> int:
        """Return the number of a study that is there."""
        if number >= len(self.studies):
            raise ServiceError(404, "there is no such study", "count studies from 0, as /v1/explorer does")
        return number

    def _overview(self) -> str:
        """Work out the list."""
        return as_json(overview_record(self.studies))

    def _study(self, number: int) -> str:
        """Work out one study."""
        study = self.studies.study(number)
        address = f"/v1/explorer/studies/{number}/image" if study.line.has_image else None
        return as_json(study_record(study, address))

    def _image(self, number: int) -> EncodedImage | None:
        """Read one image; a broken one is as if it were not there."""
        images = self.studies.settings.images
        try:
            return None if images is None else images.read(self.studies.queries[number])
        except BadInputError:
            return None


def _add_page(app: "FastAPI", page: Page) -> None:
    """Add the page's files; no data are in them."""
    from fastapi import Response

    def giving(text: str, kind: str) -> Callable[[], Any]:
        async def give() -> Response:
            return Response(text, headers={"Content-Security-Policy": PAGE_POLICY}, media_type=kind)

        return give

    for path, text, kind in (
        ("/", page.html, "text/html"),
        ("/explorer.css", page.css, "text/css"),
        ("/explorer.js", page.js, "text/javascript"),
    ):
        app.add_api_route(
            path, giving(text, kind), methods=["GET"], response_class=Response, include_in_schema=False
        )


def _add_data(app: "FastAPI", study_cache: StudyCache) -> None:
    """Add the routes that the page asks."""
    from fastapi import Path, Response

    Number = Annotated[int, Path(ge=0)]  # noqa: N806

    async def explorer() -> Response:
        """Give the list of studies, with the pick of each, and the maps of the bank."""
        return Response(
            await study_cache.ask(study_cache.overview), headers=NO_STORE, media_type="application/json"
        )

    async def explorer_study(number: Number) -> Response:
        """Give one study: the prior, all drafts, their distances, flags and alignments."""
        at = study_cache.known(number)
        found = await study_cache.ask(lambda: study_cache.study(at))
        return Response(found, headers=NO_STORE, media_type="application/json")

    async def explorer_image(number: Number) -> Response:
        """Give the X-ray of one study, where there is one."""
        at = study_cache.known(number)
        image = await study_cache.ask(lambda: study_cache.image(at))
        if image is None:
            raise ServiceError(404, "the study has no image that can be shown", "start with --images FOLDER")
        return Response(image.data, headers=NO_STORE, media_type=image.media_type)

    for path, route, answers in (
        ("/v1/explorer", explorer, responses(OVERVIEW)),
        ("/v1/explorer/studies/{number}", explorer_study, responses(STUDY, 404, 422)),
        ("/v1/explorer/studies/{number}/image", explorer_image, responses({}, 404, 422) | IMAGE),
    ):
        app.add_api_route(path, route, methods=["GET"], response_class=Response, responses=answers)
