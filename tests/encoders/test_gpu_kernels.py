"""The kernels of a GPU give the rows of the layers written out, whatever stands beside a sentence."""

import pytest
import torch

from tabon.encoders.protocol import Placement
from tabon.encoders.tokens import Group
from tabon.encoders.torch_engine.encoder import SentenceTransformerEncoder
from tabon.encoders.torch_engine.kernels import Layer, Norm, Product, Span, WrittenOut, through_layers
from tiny_mpnet_folder import SENTENCES, tiny_mpnet

if not torch.cuda.is_available():
    pytest.skip("needs a device: a GPU", allow_module_level=True)
pytest.importorskip("triton")

from tabon.encoders.torch_engine.gpu_kernels import LONGEST, OnGpu, through_fused_layers

WIDTH, HEADS, DEPTH = 192, 3, 4


def drawn(*shape, scale=1.0):
    """Return seeded numbers on the GPU, in half precision."""
    torch.manual_seed(sum(shape))
    return (scale * torch.randn(shape)).half().cuda()


def layer():
    """Return a drawn layer."""

    def product(outside, inside):
        return Product(drawn(outside, inside, scale=inside**-0.5), drawn(outside, scale=0.1), None)

    norms = [Norm(1 + drawn(WIDTH, scale=0.1), drawn(WIDTH, scale=0.1), 1e-5) for _ in range(2)]
    before = product(3 * WIDTH, WIDTH), product(WIDTH, WIDTH), norms[0]
    return Layer(*before, product(4 * WIDTH, WIDTH), product(WIDTH, 4 * WIDTH), norms[1])


LAYERS = [layer()] * DEPTH


def span(sentences, length, *, biased, start=0):
    """Return a span, with MPNet's bias or without."""
    return Span(start, sentences, length, drawn(1, HEADS, length, length) if biased else None)


@pytest.mark.parametrize("length", [1, 2, 7, 15, 16, 17, 33, 64, 100, LONGEST, LONGEST + 1])
@pytest.mark.parametrize("biased", [False, True])
def test_rows_are_those_of_the_layers_written_out(length, biased):
    """They are as near to float32 as what torch's own kernels make in half precision."""
    x = drawn(5 * length, WIDTH)
    spans = [span(5, length, biased=biased)]
    wanted = through_layers(x.float(), in_float(LAYERS), in_float_spans(spans), HEADS)
    found = through_fused_layers(x.clone(), LAYERS, spans, HEADS)
    assert found.dtype == torch.float16
    plain = through_layers(x.clone(), LAYERS, spans, HEADS)
    assert (found - wanted).abs().mean() <= 1.1 * (plain - wanted).abs().mean()
    assert (found - wanted).abs().max() <= 2 * (plain - wanted).abs().max()


def in_float(layers):
    """Return the same layers in float32."""
    return [Layer(*(type(part)(*(float_of(one) for one in part)) for part in one)) for one in layers]


def in_float_spans(spans):
    """Return the same spans in float32."""
    return [Span(*(float_of(one) for one in span)) for span in spans]


def float_of(value):
    """Return a tensor in float32, anything else as it is."""
    return value.float() if isinstance(value, torch.Tensor) else value


def test_no_company_changes_a_bit():
    """A sentence among others is the sentence among copies of itself, in every place."""
    length, sentences = 15, 64
    x = drawn(sentences * length, WIDTH).view(sentences, length, WIDTH)
    spans = [span(sentences, length, biased=True)]
    together = through_fused_layers(x.clone().flatten(0, 1), LAYERS, spans, HEADS).view_as(x)
    for place in (0, 17, 63):
        copies = x[place].expand(sentences, -1, -1).clone().flatten(0, 1)
        alone = through_fused_layers(copies, LAYERS, spans, HEADS).view_as(x)
        assert torch.equal(alone[5], together[place])


def test_several_lengths_in_one_batch():
    """Each span is read where it lies."""
    spans = [span(3, 20, biased=True), span(4, 9, biased=False, start=60)]
    x = drawn(96, WIDTH)
    found = through_fused_layers(x.clone(), LAYERS, spans, HEADS)
    wanted = through_layers(x.float(), in_float(LAYERS), in_float_spans(spans), HEADS)
    assert torch.nn.functional.cosine_similarity(found.float(), wanted, dim=1).min() > 0.999


@pytest.mark.parametrize(
    ("precision", "width", "way"),
    [
        ("float32", 64, WrittenOut),
        ("float16", 64, OnGpu),
        ("bfloat16", 64, OnGpu),
        ("float16", 16, WrittenOut),
    ],
)
def test_float32_and_small_heads_take_the_usual_way(precision, width, way, tmp_path):
    """Tensor cores round float32 and multiply 16 numbers at least; all ways give nearly the same rows."""
    folder = tiny_mpnet(tmp_path / "model", width)
    exact = SentenceTransformerEncoder(folder, name="tiny", revision="").encode(SENTENCES)
    encoder = SentenceTransformerEncoder(
        folder, name="tiny", revision="", placement=Placement("cuda", precision)
    )
    assert type(encoder._forwards[0][0]) is way
    first = encoder.encode(SENTENCES)
    assert (first * exact).sum(axis=1).min() > 0.99
    for _ in range(2):
        assert encoder.encode(SENTENCES).tobytes() == first.tobytes()


def test_a_shape_that_comes_again_has_the_same_bits():
    """The first batch of a shape runs kernel by kernel, the second is recorded, later ones are replayed."""
    transformers = pytest.importorskip("transformers")
    torch.manual_seed(0)
    config = transformers.MPNetConfig(
        hidden_size=WIDTH, num_hidden_layers=2, num_attention_heads=HEADS, intermediate_size=4 * WIDTH
    )
    model = OnGpu(transformers.MPNetModel(config).eval().cuda(), 512, "float16")
    groups = (Group(32, 16),)
    batches = [torch.randint(5, 30_000, (512,), device="cuda") for _ in range(3)]
    with torch.inference_mode():
        first = [model(ids, groups) for ids in batches]
        again = [model(ids, groups) for ids in batches]
        long = model(batches[0][: LONGEST * 3], (Group(1, 3 * LONGEST),))
    assert model._graphs[groups] is not None
    assert all(torch.equal(one, other) for one, other in zip(first, again, strict=True))
    assert long.isfinite().all()
