"""From token ids to unit rows: BERT and MPNet written out, any other model as it comes."""

from typing import Any, Protocol, TypeAlias

from tabon._internal.extras import require
from tabon.encoders.batches import Batches, Groups, one_length_batches

Tensor: TypeAlias = Any  # torch.Tensor, an optional import

WRITTEN_OUT = ("BertModel", "MPNetModel")


class Forward(Protocol):
    """A way to run a model."""

    precision: str  # as fingerprints name it

    @property
    def batches(self) -> Batches:
        """Return how sentences are put together for it."""

    def __call__(self, ids: Tensor, groups: Groups) -> Tensor:
        """Return one unit row a sentence."""


def forward_of(model: Any, tokens: int, precision: str = "float32") -> Forward:  # noqa: ANN401
    """Return the fastest way to run a model on batches of so many tokens.

    It is written out where that is known, else the library's own.

    Args:
        model: a SentenceTransformer in float32, on the device where it is to run; it may be changed.
        tokens: how many a batch has.
        precision: what it is run in.
    """
    inner: Any = getattr(model[0], "auto_model", None)
    known = type(inner).__name__ in WRITTEN_OUT and _pools_the_mean(model)
    if not known or inner.config.hidden_act != "gelu":
        return LibraryForward(model, precision)
    from tabon.encoders.torch_engine.kernels import WrittenOut

    return WrittenOut(inner, tokens, precision)


def _pools_the_mean(model: Any) -> bool:  # noqa: ANN401
    """Say whether a model takes the mean over its tokens and does nothing else to it."""
    names = [type(module).__name__ for module in model]
    if names[:2] != ["Transformer", "Pooling"] or not set(names[2:]) <= {"Normalize"}:
        return False
    return bool(model[1].get_config_dict().get("pooling_mode") == "mean")


class LibraryForward:
    """Any sentence-transformers model, run by the library."""

    batches = staticmethod(one_length_batches)

    def __init__(self, model: Any, precision: str) -> None:  # noqa: ANN401
        """Bring the model into the precision."""
        self._torch = require("torch", extra="torch", feature="torch")
        self._model, self.precision = model.to(getattr(self._torch, precision)), precision

    def __call__(self, ids: Tensor, groups: Groups) -> Tensor:
        """Return one unit row a sentence."""
        [group] = groups
        ids = ids.view(group)
        features = {"input_ids": ids, "attention_mask": self._torch.ones_like(ids)}
        if "token_type_ids" in self._model.tokenizer.model_input_names:
            features["token_type_ids"] = self._torch.zeros_like(ids)
        vectors = self._model(features)["sentence_embedding"]
        return self._torch.nn.functional.normalize(vectors.float(), dim=1)
