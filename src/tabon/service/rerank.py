"""Reranking in the form that Cohere, Jina and vLLM share: the query is the prior, the documents are drafts.

Distances become relevance scores, higher is better; where nothing is picked there are no results.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from tabon.errors import ServiceError
from tabon.method.selection import Selection
from tabon.service.parsing import SHORT, Limits, bounded_query, choice_record, object_from_body, ranking
from tabon.text.records import Query

KEYS: Final = frozenset({"model", "query", "documents", "top_n", "return_documents", "patient"})
MODEL: Final = "tabon"  # with -SELECTOR for one that the service allows beside its own
PAGE: Final = "see docs/guide/service.md, Rerank"


@dataclass(frozen=True, slots=True, kw_only=True)
class RerankRequest:
    """One request to order drafts."""

    query: Query
    documents: Sequence[str | Mapping[str, Any]]  # as they were sent
    selector: str | None  # None: the service's own
    results: int
    with_documents: bool


def rerank_request(body: bytes, limits: Limits) -> RerankRequest:
    """Read a request, or say in one sentence why it cannot be answered."""
    record = object_from_body(body, limits)
    if any(value is not None for key, value in record.items() if key not in KEYS):
        raise ServiceError(
            422, "the request has a field that has no effect here", f"send {', '.join(sorted(KEYS))} alone"
        )
    documents = record.get("documents")
    if "query" not in record or not isinstance(documents, list) or not documents:
        raise ServiceError(422, "the request has no query, or no list of documents", PAGE)
    if not all(isinstance(one, str | dict) for one in documents):
        raise ServiceError(422, "a document is neither a text nor an object", "send the text of each draft")
    results, shown = record.get("top_n"), record.get("return_documents")
    if isinstance(results, float) and results.is_integer():  # as JSON Schema has it
        results = int(results)
    if results is not None and (isinstance(results, bool) or not isinstance(results, int) or results < 1):
        raise ServiceError(
            422, "'top_n' is not a whole number from 1 on", "change it, or leave it out for all"
        )
    if shown is not None and not isinstance(shown, bool):
        raise ServiceError(422, "'return_documents' is neither true nor false", "change it")
    asked = {
        "id": "rerank",
        "prior": record["query"],
        "candidates": documents,
        "patient": record.get("patient"),
    }
    return RerankRequest(
        query=bounded_query(asked, limits),
        documents=documents,
        selector=_selector(record.get("model")),
        results=len(documents) if results is None else results,
        with_documents=bool(shown),
    )


def _selector(model: Any) -> str | None:  # noqa: ANN401  # any JSON
    """Return the selector that a model's name asks for; None: the service's own."""
    name, dash, selector = model.partition("-") if isinstance(model, str) else (model, "", "")
    if model is not None and (name != MODEL or bool(dash) != bool(selector) or len(model) > SHORT):
        raise ServiceError(422, "the model is not known here", f"write {MODEL} or {MODEL}-SELECTOR")
    return selector or None


def rerank_body(asked: RerankRequest, selection: Selection, model: str) -> bytes:
    """Return the drafts from best to worst; none where nothing was picked."""
    distances = selection.total_distances
    order = () if selection.selected is None else ranking(selection, range(len(asked.documents)))
    results = [
        {"index": place, "relevance_score": relevance(distances[place])}
        | ({"document": as_document(asked.documents[place])} if asked.with_documents else {})
        for place in order[: asked.results]
    ]
    extension = {
        **choice_record(selection),
        "distances": list(distances),
        "flags": list(map(str, selection.flags)),
    }
    return json.dumps({"model": model, "results": results, "tabon": extension}).encode()


def relevance(distance: float) -> float:
    """Turn a total distance round: (1 - 𝔇 / (1 + |𝔇|)) / 2, in (0, 1), whatever the selector's scale.

    >>> [relevance(distance) for distance in (0.0, 1.0, 3.0, -1.0)]
    [0.5, 0.25, 0.125, 0.75]
    """
    return (1.0 - distance / (1.0 + abs(distance))) / 2.0


def as_document(document: str | Mapping[str, Any]) -> Mapping[str, Any]:
    """Return a document as clients read it back: an object."""
    return {"text": document} if isinstance(document, str) else document
