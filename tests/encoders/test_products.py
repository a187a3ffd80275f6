"""Products with a matrix that was brought into the order of a library's kernels are what they were."""

import platform

import pytest
import torch

from tabon.encoders import products
from tabon.encoders.products import fastest_order, multiplied, product_with

ROWS = 384
ORDERS = ["", *(order for order in products.NAMES if products._is_known(order))]


def example(rows, inside=384, outside=96, dtype=torch.float32):
    """Return x, W and b of a product."""
    seeded = torch.Generator().manual_seed(rows)
    shapes = ((rows, inside), (outside, inside), (outside,))
    return [torch.randn(shape, generator=seeded).to(dtype) for shape in shapes]


@pytest.fixture(params=ORDERS)
def order(request, monkeypatch):
    """Each order that this torch has, whatever this processor would take."""
    monkeypatch.setattr(products, "fastest_order", lambda: request.param)
    return request.param


@pytest.mark.parametrize("rows", [1, 7, ROWS - 1, ROWS, ROWS + 1])
def test_the_product_is_the_product_for_any_number_of_rows(order, rows):
    """For the rows that it was made for, and for all others."""
    x, weight, bias = example(rows)
    product = product_with(weight, bias, ROWS)
    assert product.order == order
    expected = (x.double() @ weight.double().T + bias.double()).float()
    torch.testing.assert_close(multiplied(x, product), expected, rtol=1e-5, atol=1e-4)


@pytest.mark.usefixtures("order")
def test_a_row_of_the_product_does_not_depend_on_the_others():
    """Which is why batches of one size give the same bits in any company."""
    x, weight, bias = example(ROWS)
    product = product_with(weight, bias, ROWS)
    shuffled = torch.randperm(ROWS, generator=torch.Generator().manual_seed(1))
    assert torch.equal(multiplied(x, product)[shuffled], multiplied(x[shuffled], product))


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


def test_a_row_in_bfloat16_does_not_depend_on_the_others():
    """Where this torch has kernels for it."""
    x, weight, bias = example(ROWS)
    product = product_with(weight.bfloat16(), bias, ROWS)
    if not product.order:
        pytest.skip("oneDNN has no kernels for bfloat16 on this processor")
    shuffled = torch.randperm(ROWS, generator=torch.Generator().manual_seed(1))
    assert torch.equal(multiplied(x, product)[shuffled], multiplied(x[shuffled], product))


def test_a_model_in_reduced_precision_is_multiplied_as_it_is():
    """As on a GPU, where all of it is."""
    x, weight, bias = example(ROWS, dtype=torch.bfloat16)
    assert multiplied(x, product_with(weight, bias, ROWS)).dtype == torch.bfloat16


@pytest.mark.usefixtures("order")
def test_making_a_product_leaves_torch_s_threads_alone():
    """The one thread that a matrix is brought into order on is given back."""
    _, weight, bias = example(ROWS)
    threads = torch.get_num_threads()
    product_with(weight, bias, ROWS)
    assert torch.get_num_threads() == threads


@pytest.mark.parametrize(
    ("told", "known", "order"),
    [
        ("vendor_id\t: GenuineIntel\n", True, "mkl"),
        ("vendor_id\t: AuthenticAMD\n", True, "onednn"),
        ("CPU implementer\t: 0x41\n", True, ""),
        ("vendor_id\t: GenuineIntel\n", False, ""),
    ],
)
def test_the_order_is_that_of_the_processor_s_maker(monkeypatch, tmp_path, told, known, order):
    """None where torch lacks the operations, or where none was measured."""
    (tmp_path / "cpuinfo").write_text(told)
    monkeypatch.setattr(products, "CPU_INFO", tmp_path / "cpuinfo")
    monkeypatch.setattr(products, "_is_known", lambda _: known)
    assert fastest_order.__wrapped__() == order


def test_without_a_list_of_processors_the_platform_is_asked(monkeypatch, tmp_path):
    """As on other systems than Linux."""
    monkeypatch.setattr(products, "CPU_INFO", tmp_path / "none")
    monkeypatch.setattr(platform, "processor", lambda: "Intel64 Family 6 Model 85, GenuineIntel")
    assert products._vendor() == "GenuineIntel"


def test_a_torch_without_an_operation_has_no_such_order(monkeypatch):
    """The names are not promised by torch."""
    monkeypatch.setitem(products.NAMES, "mkl", ("mkl", "_mkl_linear", "no_such_operation"))
    assert not products._is_known("mkl")
