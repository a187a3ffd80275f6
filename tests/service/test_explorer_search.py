"""Words in reports: a slow reading finds the same sentences, and only those that are asked for."""

from hypothesis import given
from hypothesis import strategies as st

from tabon.service.explorer.search import WITHIN, find_words
from tabon.text.records import Query, reference_of
from tabon.text.reports import SECTIONS
from tabon.text.sentences import split_sentences

reports = st.lists(
    st.sampled_from(["Left effusion.", "No left edema.", "EFFUSION, right.", "Clear.", "\u0130."])
).map(" ".join)
queries = st.builds(
    lambda prior, drafts, reference: Query(prior=prior, candidates=drafts, id="q", reference=reference),
    reports,
    st.lists(reports, min_size=1, max_size=3),
    reports,
)


def slowly(query, pick, words, within):
    """Return the first sentence with all words, by reading everything."""
    named = [(pick, query.candidates[pick])] if pick is not None else []
    others = [(number, draft) for number, draft in enumerate(query.candidates) if number != pick]
    prior, reference = [("prior", query.prior)], [("reference", reference_of(query))]
    order = {
        "any": named + others + prior + reference,
        "pick": named,
        "drafts": named + others,
        "prior": prior,
        "reference": reference,
    }[within]
    return next(
        (
            (where, sentence)
            for where, report in order
            for section in SECTIONS
            for sentence in split_sentences(report.section(section))
            if all(word in sentence.lower() for word in words.lower().split())
        ),
        None,
    )


@given(queries, st.sampled_from(["left", "Effusion LEFT", "clear", "edema right", "no"]), st.booleans())
def test_the_first_sentence_with_all_words_is_found(query, words, picked):
    """In the pick, then the other drafts, the prior and the reference: what a slow reading finds."""
    pick = len(query.candidates) - 1 if picked else None
    for within in WITHIN:
        found = [(hit.where, hit.sentence) for hit in find_words([query], [pick], words, within)]
        expected = slowly(query, pick, words, within)
        assert found == ([] if expected is None else [expected])


def test_no_words_find_nothing():
    """A search without a word, and a study without a reference, give no hit and no error."""
    query = Query(prior="Clear.", candidates=["Clear."], id="q")
    assert list(find_words([query], [0], "  ", "any")) == []
    assert list(find_words([query], [0], "clear", "reference")) == []
