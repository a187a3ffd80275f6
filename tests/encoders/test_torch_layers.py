"""The layers without Python are the layers, to the last bit."""

import threading

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from tabon.encoders.torch_engine.kernels import (
    Layer,
    Norm,
    Span,
    product_with,
    through_layers,
    without_python,
)

WIDTH, HEADS, TOKENS = 32, 4, 24
SEEDED = torch.Generator().manual_seed(3)


def drawn(*shape):
    """Return seeded numbers."""
    return torch.randn(shape, generator=SEEDED)


def product(outside, inside, dtype):
    """Return a product with a drawn matrix."""
    return product_with((0.2 * drawn(outside, inside)).to(dtype), drawn(outside), TOKENS)


def layer(dtype):
    """Return a drawn layer, with products in a precision."""
    norms = [Norm(1 + 0.1 * drawn(WIDTH), 0.1 * drawn(WIDTH), 1e-12) for _ in range(2)]
    before = product(3 * WIDTH, WIDTH, dtype), product(WIDTH, WIDTH, dtype), norms[0]
    return Layer(*before, product(4 * WIDTH, WIDTH, dtype), product(WIDTH, 4 * WIDTH, dtype), norms[1])


@pytest.fixture(scope="module", params=[torch.float32, torch.bfloat16], ids=str)
def layers(request):
    """Two layers, also in reduced precision."""
    return [layer(request.param), layer(request.param)]


def spans_of(lengths, *, biased):
    """Return spans of one or two sentences of each length, and the tokens that they make up."""
    spans, start = [], 0
    for length in lengths:
        sentences = 1 + length % 2
        bias = drawn(1, HEADS, length, length) if biased else None
        spans.append(Span(start, sentences, length, bias))
        start += sentences * length
    return spans, start


@settings(max_examples=30)
@given(st.lists(st.integers(1, 20), min_size=1, max_size=5), st.booleans())
def test_without_python_no_bit_changes(layers, lengths, biased):
    """Whatever the lengths, with MPNet's bias and without, run again and again."""
    spans, tokens = spans_of(lengths, biased=biased)
    x = drawn(tokens, WIDTH)
    with torch.inference_mode():
        wanted = through_layers(x.clone(), layers, spans, HEADS)
        for _ in range(3):
            assert torch.equal(without_python()(x.clone(), layers, spans, HEADS), wanted)


def test_python_is_really_left():
    """The function that runs is TorchScript's, so that threads do not wait for Python's lock."""
    assert isinstance(without_python(), torch.jit.ScriptFunction)


def test_threads_side_by_side_give_the_same_bits(layers):
    """Each with a batch of its own, at once."""
    spans, tokens = spans_of([9, 4, 2], biased=False)
    batches = [drawn(tokens, WIDTH) for _ in range(20)]
    found = {}

    def run(numbers):
        with torch.inference_mode():
            for number in numbers:
                found[number] = without_python()(batches[number].clone(), layers, spans, HEADS)

    threads = [threading.Thread(target=run, args=(range(start, 20, 2),)) for start in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for number, x in enumerate(batches):
        assert torch.equal(through_layers(x.clone(), layers, spans, HEADS), found[number])


def test_a_torch_without_torchscript_runs_the_layers_as_they_are(monkeypatch):
    """It is deprecated, and may be gone one day."""

    def gone(_):
        raise RuntimeError("TorchScript is not supported")

    monkeypatch.setattr(torch.jit, "script", gone)
    assert without_python.__wrapped__() is through_layers
    monkeypatch.delattr(torch.jit, "script")
    assert without_python.__wrapped__() is through_layers


@pytest.mark.filterwarnings("error::DeprecationWarning")
def test_where_warnings_are_errors_the_layers_run_as_they_are():
    """A program that is run with -W error loads its encoder all the same."""
    assert without_python.__wrapped__() is through_layers
