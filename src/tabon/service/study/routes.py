"""The routes of a reader study: the page, what one reader is shown, that reader's answers.

Who asks is known by the token alone, so no address or body can name another reader. An answer is
acknowledged when it is on disk.
"""

import asyncio
import json
import logging
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import asdict, replace
from mimetypes import guess_type
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from tabon._internal.extras import require
from tabon._internal.typed_values import MisfitError, fitting
from tabon.errors import BadInputError, ServiceError
from tabon.service.app import RouteModule, answer, make_app, read_contract
from tabon.service.guard import App, GuardSettings, RequestGuard
from tabon.service.metrics import Metrics
from tabon.service.page import as_json, page_routes
from tabon.service.study.export import image_path, read_page, study_record
from tabon.study.answers import AnswerJournal
from tabon.study.design import Answer, ReaderFile, Study, check_answer
from tabon.study.folder import read_reader, read_study

if TYPE_CHECKING:
    from starlette.requests import Request
    from starlette.responses import Response

NO_STORE: Final = {"Cache-Control": "no-store"}
log = logging.getLogger(__name__)
HINT: Final = "see docs/reference/file-formats.md, Reader studies"


def study_app(folder: Path, guard: GuardSettings, modules: Sequence[RouteModule] = ()) -> App:
    """Open a study and its journal, and return its routes behind a request guard that knows its readers.

    Routes of other modules stand beside them; none of tabon's may be added that tells which draft a selector
    takes.
    """
    study = read_study(folder)
    shown = {reader.name: read_reader(folder, study, reader.name) for reader in study.readers}
    journal = AnswerJournal(folder, study)
    if journal.mended:
        log.warning("the last line of the journal was cut off, and was never acknowledged; it is dropped")
    done = sum(len(journal.given.last(reader.name)) for reader in study.readers)
    log.info(
        "%d readers, %d of %d readings answered", len(shown), done, sum(one.readings for one in study.readers)
    )
    readers = {reader.token_sha256: reader.name for reader in study.readers}
    app = make_app([study_module(folder, study, shown, journal), *modules])
    return RequestGuard(app, replace(guard, readers=readers), Metrics())


def study_module(
    folder: Path, study: Study, shown: Mapping[str, ReaderFile], journal: AnswerJournal
) -> RouteModule:
    """Return the routes of a study; the journal is closed when they end."""
    require("starlette", extra="service", feature="the HTTP service")
    from starlette.routing import Route

    routes = StudyRoutes(folder, study, shown, journal)

    @asynccontextmanager
    async def running() -> AsyncIterator[None]:
        yield
        journal.close()

    return RouteModule(
        routes=[
            *page_routes(read_page()),
            Route("/v1/study", routes.study),
            Route("/v1/study/answers", routes.answers, methods=["GET", "POST"]),
            Route("/v1/study/images/{reading}", routes.image),
            Route("/healthz", routes.healthz),
            Route("/readyz", routes.healthz),
        ],
        contract=read_contract("tabon.service.study"),
        running=running,
    )


class StudyRoutes:
    """What the routes of one study do."""

    def __init__(
        self, folder: Path, study: Study, shown: Mapping[str, ReaderFile], journal: AnswerJournal
    ) -> None:
        """Take the study and its journal; nothing else of the folder is looked at but images."""
        self._folder, self._study, self._journal = folder, study, journal
        self._records = {name: as_json(study_record(study, one)) for name, one in shown.items()}
        self._readings = {
            name: {reading.id: reading for reading in one.readings} for name, one in shown.items()
        }
        self._writing = asyncio.Lock()

    async def study(self, request: "Request") -> "Response":
        """Give all that this reader is shown."""
        return answer(self._records[request.scope["reader"]], headers=NO_STORE)

    async def answers(self, request: "Request") -> "Response":
        """Give this reader's answers that count, or keep another one."""
        if request.method == "POST":
            return await self.keep(request)
        last = self._journal.given.last(request.scope["reader"])
        found = {reading: asdict(record.answer()) for reading, record in last.items()}
        return answer(as_json({"answers": found}), headers=NO_STORE)

    async def keep(self, request: "Request") -> "Response":
        """Keep an answer of this reader; sent twice it is kept once."""
        given = _answer(await request.body())
        reader = request.scope["reader"]
        reading = self._readings[reader].get(given.reading)
        if reading is None:
            raise ServiceError(404, "there is no such case in your study", "load the page again")
        try:
            check_answer(given, self._study.design, reading)
        except BadInputError as error:
            raise ServiceError(422, str(error), HINT) from None
        async with self._writing:
            try:
                outcome = await asyncio.to_thread(self._journal.keep, reader, given)
            except (BadInputError, OSError, ValueError):  # the disk is full, or gone
                raise ServiceError(
                    503, "the answer cannot be kept now", "it is sent again by itself", retry_after=5
                ) from None
        if outcome == "superseded":
            raise ServiceError(409, "the case was answered otherwise meanwhile", "look at the newer answer")
        return answer(json.dumps({"key": given.key, "outcome": outcome}), headers=NO_STORE)

    async def image(self, request: "Request") -> "Response":
        """Give the X-ray of one of this reader's cases."""
        reading = self._readings[request.scope["reader"]].get(request.path_params["reading"])
        if reading is None or reading.image is None:
            raise ServiceError(404, "there is no such image", "load the page again")
        data = await asyncio.to_thread(image_path(self._folder, reading.image).read_bytes)
        return answer(data, media=str(guess_type(reading.image)[0]), headers=NO_STORE)

    async def healthz(self, _: "Request") -> "Response":
        """Say that the process answers."""
        return answer('{"status": "ok"}')


def _answer(body: bytes) -> Answer:
    """Read an answer; a message repeats nothing of it."""
    try:
        record: Any = json.loads(body, parse_float=_number)
        found: Answer = fitting(Answer, record)
    except (MisfitError, ValueError, RecursionError):
        raise ServiceError(422, "the body is no answer", HINT) from None
    return found


def _number(text: str) -> float:
    """Read a number with a point or an exponent; 7.0 is a whole number in JSON Schema."""
    value = float(text)
    return int(value) if value.is_integer() else value
