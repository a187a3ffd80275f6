"""The explorer's routes: the page's own files, the list of studies, one study, its images, search.

Studies are worked out when they are asked for, one at a time on a thread and with a selector of their
own (see `explorer_of`): neither the event loop nor the other routes' worker waits for them.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict
from functools import lru_cache
from typing import TYPE_CHECKING, Final, TypeVar

from tabon._internal.extras import require
from tabon.errors import ServiceError
from tabon.service.app import RouteModule, answer, read_contract
from tabon.service.explorer.export import films_record, overview_record, read_page, study_record
from tabon.service.explorer.search import LONGEST, WITHIN, Within, find_words
from tabon.service.explorer.studies import Studies
from tabon.service.page import Page, as_json, page_routes
from tabon.service.parsing import Limits, object_from_body, service_error, whole_number

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

STUDIES_KEPT: Final = 64
IMAGES_KEPT: Final = 16  # studies whose images are kept
WAITING: Final = 64  # requests that wait for the thread
SECONDS: Final = 30.0  # until a request is told to come again; the work goes on
NO_STORE: Final = {"Cache-Control": "no-store"}
T = TypeVar("T")


def explorer_module(studies: Studies, page: Page | None = None) -> RouteModule:
    """Return the routes of these studies; the page's files are read now."""
    require("starlette", extra="service", feature="the HTTP service")
    from starlette.routing import Route

    shown, cache = read_page() if page is None else page, StudyCache(studies)
    return RouteModule(
        routes=[
            *page_routes(shown),
            Route("/v1/explorer", cache.give_overview),
            Route("/v1/explorer/studies/{number}", cache.give_study),
            Route("/v1/explorer/studies/{number}/images", cache.give_images),
            Route("/v1/explorer/search", cache.give_found, methods=["POST"]),
        ],
        contract=read_contract("tabon.service.explorer"),
    )


class StudyCache:
    """Works studies out, one at a time, and keeps what was asked for last."""

    def __init__(self, studies: Studies) -> None:
        """Take the studies; nothing is worked out yet."""
        self.studies = studies
        self._pool = ThreadPoolExecutor(1, thread_name_prefix="tabon-explorer")
        self._waiting = 0
        self.overview: Callable[[], str] = lru_cache(1)(lambda: as_json(overview_record(studies)))
        self.study: Callable[[int], str] = lru_cache(STUDIES_KEPT)(self._study)
        self.images: Callable[[int], str | None] = lru_cache(IMAGES_KEPT)(self._images)

    async def give_overview(self, _: "Request") -> "Response":
        """Give the list of studies, with the pick of each, and the maps of the bank."""
        return answer(await self.ask(self.overview), headers=NO_STORE)

    async def give_study(self, request: "Request") -> "Response":
        """Give one study: the prior, all drafts, their distances, flags and alignments."""
        number = self._number(request)
        return answer(await self.ask(lambda: self.study(number)), headers=NO_STORE)

    async def give_images(self, request: "Request") -> "Response":
        """Give the X-rays of one study, prior and current, if there are any."""
        number = self._number(request)
        images = await self.ask(lambda: self.images(number))
        if images is None:
            raise ServiceError(404, "the study has no image that can be shown", "start with --images FOLDER")
        return answer(images, headers=NO_STORE)

    async def give_found(self, request: "Request") -> "Response":
        """Give the studies with a sentence that holds the words; words of reports are in no address."""
        asked = search_from_body(await request.body())
        return answer(await self.ask(lambda: self._found(*asked)), headers=NO_STORE)

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

    def _number(self, request: "Request") -> int:
        """Return the number of a study that is there."""
        number = whole_number(request.path_params["number"], "number")
        if number >= len(self.studies):
            raise ServiceError(404, "there is no such study", "count studies from 0, as /v1/explorer does")
        return number

    def _study(self, number: int) -> str:
        """Work out one study."""
        return as_json(study_record(self.studies.study(number), None))

    def _images(self, number: int) -> str | None:
        """Read the images of a study; broken ones are as if they were not there."""
        images = self.studies.settings.images
        found = None if images is None else films_record(images, self.studies.queries[number])
        return None if found is None else as_json(found)

    def _found(self, words: str, within: Within) -> str:
        """Look for words in all studies."""
        picks = [line.selection.selected for line in self.studies.lines]
        return as_json({"found": list(map(asdict, find_words(self.studies.queries, picks, words, within)))})


def search_from_body(body: bytes) -> tuple[str, Within]:
    """Read what is searched, and in which reports."""
    record = object_from_body(body, Limits())
    words, within = record.get("words"), record.get("within", "any")
    if not isinstance(words, str) or not words.strip() or len(words) > LONGEST:
        raise ServiceError(422, f"'words' is no text of 1 to {LONGEST} characters", "send words to look for")
    if within not in WITHIN:
        raise ServiceError(422, "'within' has a value that is not taken", f"give one of {', '.join(WITHIN)}")
    return words, within
