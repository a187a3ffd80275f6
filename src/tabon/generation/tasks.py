"""From a cohort to the tasks of a run: every study, prompt and sample, in order."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from itertools import islice
from pathlib import Path
from typing import Any

from tabon.errors import BadInputError
from tabon.generation.images import encode_image
from tabon.generation.journal import DraftKey
from tabon.generation.prompts import Examples, Prompt, fill
from tabon.generation.protocol import Endpoint, Parameters, Reach, Request
from tabon.generation.runner import Task
from tabon.text.records import transition_from_record

ALLOWED: Mapping[str, tuple[Reach, ...]] = {
    "none": ("local",),
    "zero-retention": ("local", "zero-retention"),
    "any": ("local", "zero-retention", "any"),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asking:
    """What is asked for each study."""

    prompts: tuple[Prompt, ...]
    samples: int
    parameters: Parameters
    seed: int = 0
    images: Path | None = None  # the folder that image paths of the cohort are relative to; None sends none
    limit: int | None = None  # the first studies of the split alone, for a trial


def check_egress(cohort: Path, generator: Endpoint) -> None:
    """Refuse to send a cohort's reports where its data set does not let them go."""
    try:
        facts = json.loads((cohort / "cohort.json").read_text())
    except (OSError, ValueError, RecursionError):
        facts = None
    if not isinstance(facts, dict):
        raise BadInputError(
            f"{cohort} has no whole cohort.json; make it with `tabon cohort` or `tabon simulate`"
        )
    policy = facts.get("egress")
    if policy not in tuple(ALLOWED):
        raise BadInputError(f"{cohort}/cohort.json names no known egress policy; build the cohort again")
    if generator.reach not in ALLOWED[policy]:
        raise BadInputError(
            f"the cohort's egress policy is {policy!r} and {generator.model} is reached as "
            f"{generator.reach!r}; use a local model, or, where your agreement allows it, build the cohort "
            "with another --egress"
        )


def read_split(cohort: Path, split: str) -> Iterator[Mapping[str, Any]]:
    """Yield the transitions of one split, each with its id as text; blank lines are skipped."""
    path = cohort / split / "transitions.jsonl"
    if not path.is_file():
        raise BadInputError(f"{path} is not there; choose another --split, or build the cohort again")
    with path.open("rb") as file:
        for number, line in enumerate(file, start=1):
            if not line.strip():
                continue
            try:
                record = json.loads(line)
            except (ValueError, RecursionError):
                record = None
            if not isinstance(record, dict):
                raise BadInputError(f"{path} line {number}: not a JSON object; fix or remove the line")
            try:
                study = transition_from_record(record).id
            except BadInputError as error:
                raise BadInputError(f"{path} line {number}: {error}") from None
            yield record | {"id": study}


def count_studies(cohort: Path, split: str, asking: Asking) -> int:
    """Count the studies of a split; a line that cannot be read or an image that is not there is an error."""
    count = 0
    for record in islice(read_split(cohort, split), asking.limit):
        count += 1
        if asking.images is not None:
            _image_path(record, asking)
    return count


def tasks(
    cohort: Path, split: str, generator: Endpoint, asking: Asking, left_out: list[str]
) -> Iterator[Task]:
    """Yield a task for every study, prompt and sample, made when its turn comes.

    A study whose image or prompt cannot be made is left out; `left_out` gets the reason.
    """
    wanted = any(prompt.needs_examples for prompt in asking.prompts)
    examples = Examples(cohort / "train" / "transitions.jsonl", seed=asking.seed) if wanted else None
    for record in islice(read_split(cohort, split), asking.limit):
        try:
            image = None if asking.images is None else encode_image(_image_path(record, asking))
            texts = [(prompt, _prompt_text(prompt, record, examples)) for prompt in asking.prompts]
        except BadInputError as error:
            left_out.append(str(error))
            continue
        for prompt, text in texts:
            for sample in range(asking.samples):
                seed = draft_seed(asking.seed, record["id"], sample)
                key = DraftKey(
                    study=record["id"],
                    model=generator.model,
                    source=generator.source,
                    prompt=prompt.name,
                    prompt_sha256=sha256(text.encode("utf-8", "surrogatepass")).hexdigest(),
                    image_sha256=None if image is None else image.sha256,
                    parameters=asking.parameters,
                    sample=sample,
                    seed=seed,
                )
                yield Task(key, Request(prompt=text, image=image, seed=seed, parameters=asking.parameters))


def draft_seed(seed: int, study: str, sample: int) -> int:
    """Return the seed of one draft: distinct for each sample, the same in every run."""
    digest = sha256(f"{seed}\0{study}".encode("utf-8", "surrogatepass")).digest()
    return (int.from_bytes(digest[:4], "big") + sample) % 2**31


def _prompt_text(prompt: Prompt, record: Mapping[str, Any], examples: Examples | None) -> str:
    """Fill a prompt for one study."""
    prior = transition_from_record(record).prior
    if examples is None or not prompt.needs_examples:
        return fill(prompt, prior=prior)
    if record.get("patient") is None:
        raise BadInputError(
            f"study {record['id']!r} names no patient; P2 needs one, to leave the patient's own reports out"
        )
    return fill(prompt, prior=prior, examples=examples.draw(record["id"], patient=str(record["patient"])))


def _image_path(record: Mapping[str, Any], asking: Asking) -> Path:
    """Find the study's image."""
    folder, name = asking.images or Path(), record.get("image")
    if not name or not isinstance(name, str):
        raise BadInputError(f"study {record['id']!r} names no image; leave --images out to send text only")
    try:
        is_inside = (folder / name).resolve().is_relative_to(folder.resolve())
        is_there = (folder / name).is_file()
    except (OSError, ValueError):  # a name that no file can have
        is_inside, is_there = True, False
    if not is_inside:
        raise BadInputError(f"the image of study {record['id']!r} lies outside {folder}; check the cohort")
    if not is_there:
        raise BadInputError(f"the image of study {record['id']!r} is not in {folder}; check --images")
    return folder / name
