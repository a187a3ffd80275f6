"""Reader studies on disk: small, of made-up reports, with two selectors whose picks always differ."""

import json
import random
from itertools import count

from tabon.evaluation.inputs import Picks
from tabon.study.answers import AnswerJournal
from tabon.study.design import Answer, StudyPlan
from tabon.study.folder import make_study, read_key, read_study
from tabon.text.records import query_from_record

SELECTORS = ("fused-secret", "longest-secret")  # names that must not reach a reader
READERS = ("ann", "bob")


def records(number, drafts=3):
    """Return queries, as records."""
    return [
        {
            "id": f"query-{one}",
            "patient": f"patient-{one}",
            "prior": {"findings": f"Nodule of {one} mm.", "impression": "Nodule."},
            "candidates": [
                {"findings": f"Nodule {one}, seen as {draft}.", "impression": f"View {draft}."}
                for draft in range(drafts)
            ],
            "reference": {"findings": f"Nodule {one}, unchanged.", "impression": "Stable."},
        }
        for one in range(number)
    ]


def picks_of(queries, names=SELECTORS):
    """Return picks: the first selector takes draft 0, the second draft 1, and so on."""
    return tuple(
        Picks(method=name, signature=f"selector:{name}", distances={}, chosen={q.id: place for q in queries})
        for place, name in enumerate(names)
    )


def write_study(  # what a study is made of
    folder, *, cases=20, design="pairwise", of=None, names=SELECTORS, image_of=lambda _: None, **plan
):
    """Write a study and return it with the readers' tokens."""
    found = records(cases + 2) if of is None else of
    queries = [query_from_record(record) for record in found]
    lines = {record["id"]: json.dumps(record).encode() + b"\n" for record in found}
    settings = {
        "readers": READERS,
        "cases": cases,
        "repeat": 0.1,
        "seed": 987654321,
        "design": design,
        **plan,
    }
    picks = picks_of(queries, names) if names else ()
    return make_study(folder, queries, picks, StudyPlan(**settings), lines=lines, image_of=image_of)


KEYS = count(1)


def answer_to(reading, values, **facts):
    """Return an answer with a key of its own."""
    own = {"key": f"{next(KEYS):032x}", "after": None, "seconds": 1.5}
    return Answer(**{**own, "reading": reading, "values": tuple(values), **facts})


def body_of(answer):
    """Return an answer as the page sends it."""
    return {
        "key": answer.key, "reading": answer.reading, "after": answer.after, "values": list(answer.values),
        "errors": [{"draft": e.draft, "kind": e.kind, "significant": e.significant} for e in answer.errors],
        "comment": answer.comment, "seconds": answer.seconds,
    }  # fmt: skip


def fill_study(folder, *, seed=0, comment=""):
    """Answer every reading of a study at random."""
    study, rng = read_study(folder), random.Random(seed)
    key, journal = read_key(folder, study), AnswerJournal(folder, study)
    for reader, readings in key.readings.items():
        for one in readings:
            drafts = len(one.shown)
            ranks = rng.sample(range(1, drafts + 1), drafts)
            values = [rng.randint(1, 5)] if study.design == "rating" else ranks
            journal.keep(reader, answer_to(one.id, values, comment=comment, seconds=rng.uniform(5, 90)))
    journal.close()
