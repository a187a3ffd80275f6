"""The paper's method figure from data: one study's drafts among the bank's transitions."""

from typing import Any

from tabon.encoders import Encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.evaluation.inputs import Cases
from tabon.method.bank import TransitionBank
from tabon.method.distances import get_distance
from tabon.method.nearest import ExactIndex
from tabon.method.sentence_sets import embed
from tabon.method.transitions import transitions
from tabon.reporting.transition_map import TransitionMap, project
from tabon.selectors import Selector
from tabon.text.reports import Section
from tabon.text.sentences import split_sentences

SHOWN: Section = "impression"
DISTANCE = "novelty"


def transition_maps(
    bank: TransitionBank, cases: Cases, encoder: Encoder, store: SentenceStore | None
) -> list[dict[str, Any]]:
    """Return the map of the first study whose drafts all have a direction of change, if there is one."""
    index = bank.section(SHOWN, DISTANCE).index
    if not isinstance(index, ExactIndex):
        return []
    for case in cases.cases:
        prior = split_sentences(case.query.prior.section(SHOWN))
        drafts = [split_sentences(draft.section(SHOWN)) for draft in case.query.candidates]
        if not prior or not all(drafts):
            continue
        texts = {*prior, *(text for draft in drafts for text in draft)}
        table = embed(texts, encoder, known=bank.known_sentences, store=store)
        [moves] = transitions(
            [get_distance(DISTANCE)],
            table.vectors,
            prior=table.rows_of([prior] * len(drafts)),
            current=table.rows_of(drafts),
        )
        if moves.zero.any():
            continue
        selector = Selector(bank, distance=DISTANCE, encoder=encoder, store=store, allow_bank_patients=True)
        [selection] = selector.select_many([case.query])
        shown = TransitionMap(
            query=case.query.id,
            section=SHOWN,
            distance=DISTANCE,
            points=project(index.vectors, moves.directions),
            picked=selection.selected,
        )
        return [shown.as_record()]
    return []
