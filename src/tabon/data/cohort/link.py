"""The paper's rules: from a patient's visits to one chain in strict order of time.

Patients with at least two qualifying AP/PA exams are kept, one view for each
patient, and every consecutive pair of the chain is a transition. Where views are
not known all of a patient's exams qualify. Nothing here looks at the order in
which rows or study ids come.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from hashlib import sha256
from typing import Literal

from tabon.data.cohort.visits import Excluded, Image, View, Visit
from tabon.errors import BadInputError
from tabon.text.records import is_too_long
from tabon.text.reports import SECTIONS

VIEWS: tuple[View, View] = ("AP", "PA")
LEAST_VISITS = 2


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """Where the paper leaves a choice."""

    seed: int = 0  # of the view of a patient who has both, and of splits that a data set lacks
    sections: Literal["any", "both"] = "any"  # what a visit must have to qualify
    history: int = 1  # earlier visits kept as priors, newest last; 0 keeps all
    shares: tuple[float, float, float] = (0.872, 0.063, 0.065)  # train, valid, test where there are none
    views: Literal["ap-pa", "any"] = "ap-pa"  # any: views are not known, all visits are one chain

    def __post_init__(self) -> None:
        """Refuse what no cohort can follow."""
        if self.history < 0:
            raise BadInputError(f"history is {self.history}; give the number of priors to keep, or 0 for all")
        if min(self.shares) < 0 or abs(sum(self.shares) - 1.0) > 1e-9:  # noqa: PLR2004  # rounding
            raise BadInputError(f"shares are {self.shares}; give three that are not negative and sum to 1")


@dataclass(frozen=True, slots=True)
class Chain:
    """A patient's visits in one view, each strictly later than the one before."""

    patient: str
    split: str
    view: View | None  # None where views are not known
    visits: tuple[Visit, ...]


@dataclass(frozen=True, slots=True)
class Linked:
    """What the rules made of one patient."""

    chain: Chain | None
    excluded: tuple[Excluded, ...]


def link(visits: Iterable[Visit], rules: Rules) -> Linked:
    """Apply the rules to all the visits of one patient."""
    visits = list(visits)
    split = _split(visits, rules)
    united, excluded = _unite(visits)
    reasons = {visit.study: _reason(visit, rules) for visit in united}
    excluded += [_exclude(visit, reason) for visit in united if (reason := reasons[visit.study])]
    qualifying = [visit for visit in united if reasons[visit.study] is None]
    views = VIEWS if rules.views == "ap-pa" else (None,)
    chains = {view: _in_order(qualifying, view) for view in views}
    lasting = [view for view in views if len(chains[view][0]) >= LEAST_VISITS]
    if not lasting:
        excluded += [_exclude(visit, "fewer-than-two-visits") for visit in qualifying]
        return Linked(None, tuple(excluded))
    patient = qualifying[0].patient
    view = lasting[_draw(rules.seed, "view", patient) % len(lasting)]
    kept, same_day = chains[view]
    excluded += [_exclude(visit, "same-day") for visit in same_day]
    excluded += [_exclude(visit, "other-view") for visit in qualifying if not _has(visit, view)]
    return Linked(Chain(patient, split, view, tuple(kept)), tuple(excluded))


def _unite(visits: Iterable[Visit]) -> tuple[list[Visit], list[Excluded]]:
    """Make one visit of the rows of one study: all images, the earliest moment, the first text by hash."""
    studies: dict[str, Visit] = {}
    excluded: list[Excluded] = []
    for visit in sorted(visits, key=_preference):
        first = studies.setdefault(visit.study, visit)
        if visit.report != first.report:
            excluded.append(_exclude(visit, "conflicting-report"))
        elif visit is not first:
            images = dict.fromkeys((*first.images, *visit.images))
            earlier = visit.moment if visit.moment.precedes(first.moment) else first.moment
            studies[visit.study] = replace(first, images=tuple(images), moment=earlier)
    return list(studies.values()), excluded


def _reason(visit: Visit, rules: Rules) -> str | None:
    """Return the first rule that a visit breaks."""
    lacking = [section for section in SECTIONS if not visit.report.section(section)]
    if len(lacking) == len(SECTIONS):
        return "no-sections"
    if lacking and rules.sections == "both":
        return f"lacks-{lacking[0]}"
    if is_too_long(visit.report):
        return "too-long"
    return None if rules.views == "any" or any(_has(visit, view) for view in VIEWS) else "no-ap-pa-view"


def _in_order(visits: list[Visit], view: View | None) -> tuple[list[Visit], list[Visit]]:
    """Return the visits of a view in strict order, and those that time does not order.

    Of two visits that time does not order one is kept: the one with more
    sections, then with more text. Which has the lower study id never matters.
    """
    kept: list[Visit] = []
    unordered: list[Visit] = []
    of_view = (visit for visit in visits if _has(visit, view))
    by_time = sorted(of_view, key=lambda one: (one.moment.day, one.moment.second or 0.0, *_preference(one)))
    for visit in by_time:
        if not kept or kept[-1].moment.precedes(visit.moment):
            kept.append(visit)
        elif _preference(visit) < _preference(kept[-1]):
            unordered.append(kept[-1])
            kept[-1] = visit
        else:
            unordered.append(visit)
    return kept, unordered


def _preference(visit: Visit) -> tuple[int, int, str]:
    """Order visits by what they say: more sections, more text, then a hash of the text."""
    texts = [visit.report.section(section) for section in SECTIONS]
    digest = sha256("\0".join(texts).encode("utf-8", "surrogatepass")).hexdigest()
    return -sum(map(bool, texts)), -sum(map(len, texts)), digest


def _split(visits: list[Visit], rules: Rules) -> str:
    """Return the patient's split; one that is not given is drawn from the seed."""
    splits = {visit.split for visit in visits if visit.split is not None}
    patient = visits[0].patient if visits else ""
    if len(splits) > 1:
        names = ", ".join(sorted(splits))
        raise BadInputError(f"patient {patient!r} is in the splits {names}; splits must not share patients")
    if splits:
        return splits.pop()
    place = _draw(rules.seed, "split", patient) / 2**64
    train, valid, _ = rules.shares
    return "train" if place < train else "valid" if place < train + valid else "test"


def _draw(seed: int, what: str, patient: str) -> int:
    """Draw a number that depends on the seed and the patient alone."""
    text = f"{seed}\0{what}\0{patient}".encode("utf-8", "surrogatepass")
    return int.from_bytes(sha256(text).digest()[:8], "big")


def _has(visit: Visit, view: View | None) -> bool:
    """Whether a visit has an image of this view; all have where views are not known."""
    return view is None or any(image.view == view for image in visit.images)


def image_of(visit: Visit, view: View | None) -> Image:
    """Return the visit's image of this view; the first path of several."""
    images = (image for image in visit.images if view in (None, image.view))
    return min(images, key=lambda image: image.path, default=Image("", None))


def _exclude(visit: Visit, reason: str) -> Excluded:
    """Name a visit and why it is left out."""
    return Excluded(visit.source, reason, visit.study)
