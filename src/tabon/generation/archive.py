"""A journal asked again: the same drafts, without a model and without money."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tabon.errors import BadInputError
from tabon.generation.journal import read_journal
from tabon.generation.protocol import Answer
from tabon.generation.replay import ReplayGenerator, archive_key


def replay_journal(path: Path) -> ReplayGenerator:
    """Return a generator that answers from a journal of one model."""
    answers: dict[str, Answer] = {}
    models: set[tuple[str, str | None]] = set()
    for record in read_journal(path):
        models.add((record["model"], record.get("source")))
        answers[_key(record)] = _answer(record)
    if len(models) != 1:
        shown = ", ".join(sorted(f"{name} at {source or 'its own address'}" for name, source in models))
        raise BadInputError(
            f"{path} holds drafts of several models or none ({shown or 'none'}); replay one at a time"
        )
    ((name, source),) = models
    return ReplayGenerator(answers, name=name, source=source)


def _key(record: Mapping[str, Any]) -> str:
    """Name a record as a request would."""
    return archive_key(
        prompt_sha256=record["prompt_sha256"], image_sha256=record["image_sha256"], seed=record["seed"]
    )


def _answer(record: Mapping[str, Any]) -> Answer:
    """Return what was answered then."""
    names = ("outcome", "text", "finish_reason", "model_version", "input_tokens", "output_tokens", "raw")
    return Answer(**{name: record[name] for name in names})
