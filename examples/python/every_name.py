"""Every public name of tabon, used once, on simulated patients."""

import sys
import warnings
from pathlib import Path
from tempfile import TemporaryDirectory

import tabon


def main() -> None:
    """Build a bank, select with three selectors, compare them, and explain a choice."""
    cohort: tabon.Cohort = tabon.simulate(patients=120, num_drafts=3, prompt="p3", seed=1)
    encoder = tabon.load_encoder("hashing")  # for real work: minilm
    with TemporaryDirectory() as folder:
        store = tabon.SentenceStore(Path(folder) / "sentences.sqlite")
        bank = tabon.TransitionBank.build(cohort.transitions, encoder=encoder, store=store)
        bank.save(Path(folder) / "bank.tabon")
        bank = tabon.TransitionBank.load(Path(folder) / "bank.tabon", in_memory=True)
    selectors = {
        "fused": tabon.Selector(bank, "fused"),
        "cost-ot": tabon.Selector(bank, distance="cost-ot", aggregate="knn", num_neighbours=5, zero="match"),
    }
    picks: dict[str, list[tabon.Selection]] = {
        name: selector.select_many(cohort.queries) for name, selector in selectors.items()
    }
    judged = [
        {"id": query.id, "draft": draft, "name": "judge", "value": draft, "direction": "lower"}
        for query in cohort.queries
        for draft in range(len(query.candidates))
    ]
    found: tabon.Evaluation = tabon.evaluate(
        cohort.queries, picks, metrics=["rouge", tabon.load_metric("labels")], scores=judged, resamples=100
    )
    print(found.compare("fused", "cost-ot"))
    print(found.to_frame("polars").height, len(found.plot("findings").drawing.svg) > 0, repr(found))
    why = tabon.explain(selectors["fused"], cohort.queries[0], neighbours=1)
    print(why.selected == picks["fused"][0].selected)
    print(one_visit())


def one_visit() -> tabon.Selection:
    """Make everything by hand, from texts and rows."""
    rows = [{"PID": 7, "Date": f"2019-0{month}-01", "Report": f"Effusion {month}."} for month in (3, 4)]
    read = tabon.read_visits(rows, shares=(1.0, 0.0, 0.0), order="day-first")
    prior = tabon.parse_report("FINDINGS: Clear lungs. IMPRESSION: Normal.")
    current = tabon.Report(findings="New effusion.", impression="Effusion.")
    moves = [*read.transitions, tabon.Transition(prior=prior, current=current, patient="p1")]
    bank = tabon.TransitionBank.build(moves, encoder="hashing")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", tabon.NoPatientsWarning)
        tabon.TransitionBank.build([{"prior": "Clear.", "current": "Clear."}], encoder="hashing")
    query = tabon.Query(prior=prior, candidates=["Clear lungs.", current], patient=8, reference=current)
    same = tabon.read_queries([{"prior": "Clear lungs.", "candidates": ["Clear lungs."], "patient": 8}])
    try:
        return tabon.Selector(bank, distance="mean-shift").select_many([query, *same])[0]
    except tabon.TabonError as error:
        sys.exit(f"tabon {tabon.__version__}: {error}, {tabon.split_sentences('One. Two.')}")


main()
