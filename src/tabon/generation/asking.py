"""From a cohort to the tasks of a run: every study, prompt and sample, in order."""

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path
from typing import Any

from tabon.errors import BadInputError
from tabon.generation.images import encode_image
from tabon.generation.journal import DraftKey
from tabon.generation.prompts import Examples, Prompt, fill
from tabon.generation.protocol import EncodedImage, Parameters, Reach, Reached, Request
from tabon.generation.running import Task
from tabon.records import transition_from_record

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


def check_egress(cohort: Path, generator: Reached) -> None:
    """Refuse to send a cohort's reports where its data set does not let them go."""
    policy = read_cohort(cohort)["egress"]
    if generator.reach not in ALLOWED[policy]:
        raise BadInputError(
            f"the cohort's egress policy is {policy!r} and {generator.model} is reached as "
            f"{generator.reach!r}; use a local model, or, where your agreement allows it, build the cohort "
            "with another --egress"
        )


def read_cohort(cohort: Path) -> Mapping[str, Any]:
    """Return the facts that travel with a cohort."""
    try:
        facts: Mapping[str, Any] = json.loads((cohort / "cohort.json").read_text())
    except (OSError, ValueError):
        raise BadInputError(
            f"{cohort} has no whole cohort.json; make it with `tabon cohort` or `tabon simulate`"
        ) from None
    if facts.get("egress") not in ALLOWED:
        raise BadInputError(f"{cohort}/cohort.json names no known egress policy; build the cohort again")
    return facts


def read_split(cohort: Path, split: str) -> Iterator[Mapping[str, Any]]:
    """Yield the transitions of one split."""
    path = cohort / split / "transitions.jsonl"
    if not path.is_file():
        raise BadInputError(f"{path} is not there; choose another --split, or build the cohort again")
    with path.open("rb") as file:
        for line in file:
            yield json.loads(line)


def tasks(cohort: Path, split: str, model: str, asking: Asking) -> Iterator[Task]:
    """Yield a task for every study, prompt and sample, made when its turn comes."""
    wanted = any(prompt.needs_examples for prompt in asking.prompts)
    examples = Examples(cohort / "train" / "transitions.jsonl", seed=asking.seed) if wanted else None
    for record in read_split(cohort, split):
        image = _image(record, asking)
        for prompt in asking.prompts:
            text = _prompt_text(prompt, record, examples)
            for sample in range(asking.samples):
                seed = draft_seed(asking.seed, record["id"], sample)
                request = Request(prompt=text, image=image, seed=seed, parameters=asking.parameters)
                yield Task(_key(record["id"], model, prompt, request, sample), request)


def draft_seed(seed: int, study: str, sample: int) -> int:
    """Return the seed of one draft: distinct for each sample, the same in every run."""
    digest = sha256(f"{seed}\0{study}".encode("utf-8", "surrogatepass")).digest()
    return (int.from_bytes(digest[:4], "big") + sample) % 2**31


def _key(study: str, model: str, prompt: Prompt, request: Request, sample: int) -> DraftKey:
    """Return what the draft is kept under."""
    return DraftKey(
        study=study,
        model=model,
        prompt=prompt.name,
        prompt_sha256=sha256(request.prompt.encode("utf-8", "surrogatepass")).hexdigest(),
        image_sha256=None if request.image is None else request.image.sha256,
        parameters=request.parameters,
        sample=sample,
    )


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


def _image(record: Mapping[str, Any], asking: Asking) -> EncodedImage | None:
    """Load the study's image, where images are sent."""
    if asking.images is None:
        return None
    if not record.get("image"):
        raise BadInputError(f"study {record['id']!r} names no image; leave --images out to send text only")
    path = asking.images / record["image"]
    if not path.resolve().is_relative_to(asking.images.resolve()):
        raise BadInputError(
            f"the image of study {record['id']!r} lies outside {asking.images}; check the cohort"
        )
    return encode_image(path)
