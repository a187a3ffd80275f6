"""Thread counts, process restarts and hash seeds do not change a bit of a selection."""

import os
import subprocess
import sys
import textwrap

import pytest

PROGRAM = """
    import hashlib, json
    from tabon import Selector, TransitionBank
    from tabon.text.records import query_from_record, transition_from_record
    from tabon.data.simulate import SimulationSettings, simulate_queries, simulate_transitions

    settings = SimulationSettings(patients=16, splits=(0.7, 0.0, 0.3))
    transitions = map(transition_from_record, simulate_transitions(settings, "train"))
    queries = [query_from_record(record) for record in simulate_queries(settings, "test")][:4]
    bank = TransitionBank.build(transitions, encoder="minilm")
    print(bank.sha256)
    for distance in ("mean-shift", "novelty", "dir-hausdorff", "cost-ot"):
        for aggregate in ("min", "knn"):
            selector = Selector(bank, distance=distance, aggregate=aggregate)
            records = [one.as_record(query.id) for query, one in zip(queries, selector.select_many(queries))]
            print(hashlib.sha256(json.dumps(records).encode()).hexdigest())
"""


def run(threads, seed):
    """Run the method whole in a new process."""
    environment = os.environ | {
        "OMP_NUM_THREADS": str(threads),
        "OPENBLAS_NUM_THREADS": str(threads),
        "MKL_NUM_THREADS": str(threads),
        "PYTHONHASHSEED": str(seed),
    }
    command = [sys.executable, "-c", textwrap.dedent(PROGRAM)]
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=True).stdout


@pytest.mark.heavy
def test_threads_restarts_and_hash_seeds_do_not_change_a_bit():
    """The bank's sum and eight methods' selections with the real encoder are equal over processes."""
    outputs = {run(threads, seed) for threads, seed in ((1, 0), (2, 1), (8, 2))}
    assert len(outputs) == 1
    assert len(outputs.pop().split()) == 9
