"""Products with a matrix that was brought into the order of oneDNN's kernels are what they were."""

import pytest
import torch

from tabon.encoders.torch_engine import kernels as products
from tabon.encoders.torch_engine.kernels import multiplied, product_with

ROWS = 384


def example(rows, inside=384, outside=96, dtype=torch.float32):
    """Return x, W and b of a product."""
    seeded = torch.Generator().manual_seed(rows)
    shapes = ((rows, inside), (outside, inside), (outside,))
    return [torch.randn(shape, generator=seeded).to(dtype) for shape in shapes]


@pytest.mark.parametrize("rows", [1, 7, ROWS - 1, ROWS, ROWS + 1])
def test_the_product_is_the_product_for_any_number_of_rows(rows):
    """In float32, by torch's own kernels."""
    x, weight, bias = example(rows)
    product = product_with(weight, bias, ROWS)
    assert product.ordered is None
    expected = (x.double() @ weight.double().T + bias.double()).float()
    torch.testing.assert_close(multiplied(x, product), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
@pytest.mark.parametrize("rows", [1, 7, ROWS])
def test_a_product_in_reduced_precision_rounds_its_factors_and_what_comes_out(dtype, rows):
    """And adds b in the precision of x."""
    x, weight, bias = example(rows)
    found = multiplied(x, product_with(weight.to(dtype), bias, ROWS))
    exact = x.to(dtype).double() @ weight.to(dtype).double().T
    assert found.dtype == torch.float32
    step = 2.0 * torch.finfo(dtype).eps
    assert ((found - bias - exact).abs() <= step * exact.abs() + 1e-4).all()


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_a_row_of_the_product_does_not_depend_on_the_others(dtype):
    """Which is why batches of one size give the same bits in any company."""
    x, weight, bias = example(ROWS)
    product = product_with(weight.to(dtype), bias, ROWS)
    if dtype == torch.bfloat16 and product.ordered is None:
        pytest.skip("oneDNN has no kernels for bfloat16 on this processor")
    shuffled = torch.randperm(ROWS, generator=torch.Generator().manual_seed(1))
    assert torch.equal(multiplied(x, product)[shuffled], multiplied(x[shuffled], product))


def test_a_model_in_reduced_precision_is_multiplied_as_it_is():
    """As on a GPU, where all of it is."""
    x, weight, bias = example(ROWS, dtype=torch.bfloat16)
    assert multiplied(x, product_with(weight, bias, ROWS)).dtype == torch.bfloat16


def test_making_a_product_leaves_torch_s_threads_alone():
    """The one thread that a matrix is brought into order on is given back."""
    _, weight, bias = example(ROWS)
    threads = torch.get_num_threads()
    product_with(weight.bfloat16(), bias, ROWS)
    assert torch.get_num_threads() == threads


def test_a_torch_without_the_operations_multiplies_by_its_own(monkeypatch):
    """The names are not promised by torch."""
    monkeypatch.setattr(products.torch.ops, "mkldnn", object())
    _, weight, bias = example(ROWS)
    assert product_with(weight.bfloat16(), bias, ROWS).ordered is None
