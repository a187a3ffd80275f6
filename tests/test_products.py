"""Products with a matrix that was brought into MKL's order are what they were."""

import pytest

from tabon.encoders import products
from tabon.encoders.products import product_with

torch = pytest.importorskip("torch", reason="needs the extra minilm")

ROWS = 384


def example(rows, inside=384, outside=96, dtype=torch.float32):
    """Return x, W and b of a product."""
    seeded = torch.Generator().manual_seed(rows)
    shapes = ((rows, inside), (outside, inside), (outside,))
    return [torch.randn(shape, generator=seeded).to(dtype) for shape in shapes]


@pytest.mark.parametrize("rows", [1, 7, ROWS - 1, ROWS, ROWS + 1])
def test_the_product_is_that_of_torch_for_any_number_of_rows(rows):
    """For the rows that it was made for, and for all others."""
    x, weight, bias = example(rows)
    found = product_with(weight, bias, ROWS)(x)
    expected = (x.double() @ weight.double().T + bias.double()).float()
    torch.testing.assert_close(found, expected, rtol=1e-5, atol=1e-4)


def test_a_row_of_the_product_does_not_depend_on_the_others():
    """Which is why batches of one size give the same bits in any company."""
    x, weight, bias = example(ROWS)
    product = product_with(weight, bias, ROWS)
    order = torch.randperm(ROWS, generator=torch.Generator().manual_seed(1))
    assert torch.equal(product(x)[order], product(x[order]))


def test_a_torch_without_mkl_multiplies_as_ever(monkeypatch):
    """A machine without it gets the same numbers, up to rounding."""
    x, weight, bias = example(ROWS)
    packed = product_with(weight, bias, ROWS)(x)
    monkeypatch.setattr(products, "_packs", lambda _: False)
    torch.testing.assert_close(product_with(weight, bias, ROWS)(x), packed, rtol=1e-5, atol=1e-4)


def test_reduced_precision_is_left_to_torch():
    """MKL's order is for float32 alone."""
    x, weight, bias = example(ROWS, dtype=torch.bfloat16)
    assert product_with(weight, bias, ROWS)(x).dtype == torch.bfloat16


def test_making_a_product_leaves_torch_s_threads_alone():
    """The one thread that a matrix is brought into order on is given back."""
    _, weight, bias = example(ROWS)
    threads = torch.get_num_threads()
    product_with(weight, bias, ROWS)
    assert torch.get_num_threads() == threads
