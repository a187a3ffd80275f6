"""A score finds its metric by its name, whatever is measured by it."""

import pytest

from tabon.errors import UnknownNameError
from tabon.evaluation.controls.runner import load_some
from tabon.metrics import WEIGHTLESS, load_metric, load_scores
from tabon.selectors.similarity import load_distance


@pytest.mark.parametrize("name", WEIGHTLESS)
def test_every_score_finds_its_metric(name):
    """Each score of each metric that needs no file leads back to it, and to itself."""
    for score in load_metric(name).scores:
        metric, found = load_scores([score.name])[score.name]
        assert (metric.name, found.name) == (name, score.name)


def test_of_two_metrics_that_begin_alike_the_longer_name_counts():
    """`rexrank-bleu2` needs no model, though `rexrank` does."""
    [loaded] = load_some(["rexrank-bleu2"])
    assert [score.name for score in loaded.scores] == ["rexrank-bleu2"]
    assert load_distance("rexrank-bleu2").name == "rexrank-bleu2"


def test_an_unknown_score_is_met_with_the_usual_ones():
    """A metric that is not there, and a score that its metric lacks, are refused by name."""
    with pytest.raises(UnknownNameError, match="unknown score 'rogue-l'"):
        load_scores(["rogue-l"])
    with pytest.raises(UnknownNameError, match="unknown score 'rouge-9'"):
        load_scores(["rouge-9"])
    with pytest.raises(
        UnknownNameError, match=r"unknown set distance or score 'chamfr'\. Did you mean 'chamfer'"
    ):
        load_distance("chamfr")
