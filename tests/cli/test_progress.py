"""Progress: a bar where a person is watching, a line now and then in a log, nothing in a short run."""

import click
import pytest
from click.testing import CliRunner

from tabon.cli import shared_options
from tabon.encoders.hashing import HashingEncoder
from tabon.method.sentence_sets import embed


class Slow(HashingEncoder):
    """An encoder that takes two sentences at a time."""

    chunk = 2


def told(seconds, monkeypatch):
    """Return what a command without a terminal says that needs so many seconds between two steps."""
    clock = iter(range(0, 10_000, seconds))
    monkeypatch.setattr(shared_options, "monotonic", lambda: next(clock))

    @click.command()
    def work():
        with shared_options.progress_bar("embedding sentences") as progress:
            for done in range(4):
                progress(done, 3)

    return CliRunner().invoke(work).stderr.splitlines()


def test_a_short_command_says_nothing(monkeypatch):
    """What is done within a minute leaves the log alone."""
    assert told(1, monkeypatch) == []


def test_a_long_command_says_how_far_it_is(monkeypatch):
    """A log gets the count and the total."""
    assert told(61, monkeypatch)[-1] == "embedding sentences: 3 of 3"


@pytest.mark.parametrize("known", [0, 3])
def test_embedding_says_at_once_how_much_there_is(known):
    """The first call has the total, and every chunk moves it; what is known is not counted."""
    sentences = [f"Sentence {number}." for number in range(7)]
    seen = []
    rows = {text: HashingEncoder().encode([text])[0] for text in sentences[:known]}
    embed(sentences, Slow(), known=rows, progress=lambda done, total: seen.append((done, total)))
    left = 7 - known
    assert seen == [(done, left) for done in sorted({*range(0, left, 2), left})]
