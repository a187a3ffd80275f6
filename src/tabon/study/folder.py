"""The folder of a study: its public part, a file for each reader, the key apart, the answers.

    study.json      title, design, readers with the sha256 of their tokens
    readers/a.json  what reader a is shown
    queries.jsonl   the queries of the cases, for `tabon evaluate`
    key.json        what leads back to queries, drafts and selectors
    images/         the X-rays of the cases, if they are shown
    answers.jsonl   the journal

All files are readable by their owner alone. study.json is written last: without it the folder is no study.
"""

import json
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from hashlib import sha256
from pathlib import Path
from secrets import token_urlsafe
from typing import Any, Final

from tabon._internal.atomic_files import replacing
from tabon._internal.typed_values import read_typed
from tabon.errors import BadInputError
from tabon.evaluation.inputs import Picks
from tabon.study.assignment import StudyCase, assign, count_pairs, draw_cases
from tabon.study.design import QUESTIONS, Key, Reader, ReaderFile, Study, StudyPlan
from tabon.text.records import Query

STUDY_FORMAT: Final = "tabon-study/1"
READER_FORMAT: Final = "tabon-study-reader/1"
KEY_FORMAT: Final = "tabon-study-key/1"
ANSWERS: Final = "answers.jsonl"
QUERIES: Final = "queries.jsonl"
IMAGES: Final = "images"
TOKEN_BYTES: Final = 18  # 24 letters
_HINT = "restore the folder from a copy, or make the study anew"


def make_study(
    out: Path,
    queries: Sequence[Query],
    picks: Sequence[Picks],
    plan: StudyPlan,
    *,
    lines: Mapping[str, bytes],
    image_of: Callable[[Query], tuple[str, bytes] | None] = lambda _: None,
) -> tuple[Study, dict[str, str]]:
    """Write a new study and return it with the readers' tokens, which are kept nowhere else.

    `lines` are the queries as they are in their file, by id; `image_of` gives an image's ending and bytes.
    """
    if (out / "study.json").exists():
        raise BadInputError(f"{out} holds a study already{_answered(out)}; give another --out")
    cases = draw_cases(queries, picks, plan)
    if plan.reference and (without := sum(case.query.reference is None for case in cases)):
        raise BadInputError(
            f"{without} of the {len(cases)} cases have no reference to show; leave out --show-reference"
        )
    out.mkdir(parents=True, exist_ok=True, mode=0o700)
    assigned = assign(cases, plan, _write_images(out, cases, plan.seed, image_of))
    digest = sha256(b"".join(lines[case.query.id] for case in cases)).hexdigest()
    facts = {**asdict(plan), "queries": digest, "picks": {one.method: one.signature for one in picks}}
    identity = sha256(json.dumps(facts).encode()).hexdigest()[:16]
    tokens = {reader: token_urlsafe(TOKEN_BYTES) for reader in plan.readers}
    readers = []
    for name, found in assigned.items():
        shown = ReaderFile(study=identity, reader=name, readings=tuple(one.reading for one in found))
        written = _write(out / "readers" / f"{name}.json", READER_FORMAT, asdict(shown))
        readers.append(
            Reader(name=name, token_sha256=token_digest(tokens[name]), readings=len(found), sha256=written)
        )
    key = Key(
        study=identity,
        seed=plan.seed,
        selectors={one.method: one.signature for one in picks},
        queries_sha256=digest,
        pairs=count_pairs(queries, picks),
        readings={name: tuple(one.key for one in found) for name, found in assigned.items()},
    )
    _write(out / "key.json", KEY_FORMAT, asdict(key))
    with replacing(out / QUERIES) as file:
        file.writelines(lines[query.id] for query in queries if query.id in {case.query.id for case in cases})
    study = Study(
        study=identity,
        title=plan.title,
        design=plan.design,
        question=plan.question or QUESTIONS[plan.design],
        cases=len(cases),
        readers=tuple(readers),
    )
    _write(out / "study.json", STUDY_FORMAT, asdict(study))
    return study, tokens


def new_token(folder: Path, reader: str) -> str:
    """Give a reader another token; the one before counts no more."""
    study, token = read_study(folder), token_urlsafe(TOKEN_BYTES)
    study.reader(reader)
    readers = tuple(
        replace(one, token_sha256=token_digest(token)) if one.name == reader else one for one in study.readers
    )
    _write(folder / "study.json", STUDY_FORMAT, asdict(replace(study, readers=readers)))
    return token


def token_digest(token: str | bytes) -> str:
    """Return what is kept of a token: it is random, so one round of sha256 keeps it."""
    return sha256(token.encode() if isinstance(token, str) else token).hexdigest()


def read_study(folder: Path) -> Study:
    """Read the public part of a study."""
    path = folder / "study.json"
    if not path.is_file():
        raise BadInputError(f"{folder} holds no study; make one with `tabon study init`")
    return read_typed(Study, path, form=STUDY_FORMAT, what="study", hint=_HINT)


def read_reader(folder: Path, study: Study, name: str) -> ReaderFile:
    """Read what one reader is shown."""
    path = folder / "readers" / f"{study.reader(name).name}.json"
    found = read_typed(ReaderFile, path, form=READER_FORMAT, what="reader's file", hint=_HINT)
    if sha256(path.read_bytes()).hexdigest() != study.reader(name).sha256:
        raise BadInputError(f"{path} was changed after the study was made; {_HINT}")
    return found


def read_key(folder: Path, study: Study) -> Key:
    """Read the key of a study."""
    path = folder / "key.json"
    key = read_typed(Key, path, form=KEY_FORMAT, what="key", hint=_HINT)
    if key.study != study.study:
        raise BadInputError(f"{path} is the key of another study; {_HINT}")
    return key


def _write_images(
    out: Path,
    cases: Sequence[StudyCase],
    seed: int,
    image_of: Callable[[Query], tuple[str, bytes] | None],
) -> dict[str, str]:
    """Write the images of the cases under names that say nothing, and return the names by query."""
    names = {}
    for case in cases:
        found = image_of(case.query)
        if found is not None:
            ending, data = found
            name = sha256(f"{seed}|image|{case.query.id}".encode()).hexdigest()[:12]
            names[case.query.id] = f"{name}.{ending}"
            with replacing(out / IMAGES / names[case.query.id]) as file:
                file.write(data)
    return names


def _answered(out: Path) -> str:
    """Say how many lines of answers a folder holds."""
    path = out / ANSWERS
    lines = path.read_bytes().count(b"\n") if path.is_file() else 0
    return f" with {lines:,} answers" if lines else ""


def _write(path: Path, form: str, record: Mapping[str, Any]) -> str:
    """Write JSON that its owner alone can read, and return its sha256."""
    data = (json.dumps({"format": form, **record}) + "\n").encode()
    with replacing(path) as file:
        os.fchmod(file.fileno(), 0o600)
        file.write(data)
    return sha256(data).hexdigest()
