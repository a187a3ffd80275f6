"""Drafts that were generated before, given again."""

from collections.abc import Callable, Mapping
from hashlib import sha256
from pathlib import Path

from tabon.errors import BadInputError, GenerationError
from tabon.generation.journal import read_journal
from tabon.generation.protocol import Answer, Reach, Request

Records = Mapping[str, Answer] | Callable[[Request], Answer | None]


def archive_key(*, prompt_sha256: str, image_sha256: str | None, seed: int) -> str:
    """Name a draft by what its journal record holds.

    >>> archive_key(prompt_sha256="ab", image_sha256=None, seed=3)
    'ab:-:3'
    """
    return f"{prompt_sha256}:{image_sha256 or '-'}:{seed}"


def replay_key(request: Request) -> str:
    """Name the draft that a request asks for: the filled prompt, the image and the seed."""
    return archive_key(
        prompt_sha256=sha256(request.prompt.encode("utf-8", "surrogatepass")).hexdigest(),
        image_sha256=request.image.sha256 if request.image else None,
        seed=request.seed,
    )


class ReplayGenerator:
    """Answers from an archive, and only from there.

    The key holds neither the model nor the sampling settings: an archive is
    the drafts of one model under one setting.
    """

    reach: Reach = "local"

    def __init__(self, records: Records, *, name: str = "archive", source: str | None = None) -> None:
        """Take answers by `replay_key`, or a function that finds them (None: not there)."""
        self.model, self.source = f"replay:{name}", source
        self._records = records

    async def generate(self, request: Request) -> Answer:
        """Give the answer that was given then."""
        records = self._records
        answer = records.get(replay_key(request)) if isinstance(records, Mapping) else records(request)
        if answer is None:
            raise GenerationError(
                f"the draft of prompt {replay_key(request)[:12]} with seed "
                f"{request.seed} is not in the archive; generate it with its model first"
            )
        return answer

    async def close(self) -> None:
        """Nothing to let go."""


def replay_journal(path: Path) -> ReplayGenerator:
    """Return a generator that answers from a journal of one model, without a model and without money."""
    names = ("outcome", "text", "finish_reason", "model_version", "input_tokens", "output_tokens", "raw")
    answers: dict[str, Answer] = {}
    models: set[tuple[str, str | None]] = set()
    for record in read_journal(path):
        models.add((record["model"], record.get("source")))
        asked = {name: record[name] for name in ("prompt_sha256", "image_sha256", "seed")}
        answers[archive_key(**asked)] = Answer(**{name: record[name] for name in names})
    if len(models) != 1:
        shown = ", ".join(sorted(f"{name} at {source or 'its own address'}" for name, source in models))
        raise BadInputError(
            f"{path} holds drafts of several models or none ({shown or 'none'}); replay one at a time"
        )
    ((name, source),) = models
    return ReplayGenerator(answers, name=name, source=source)
