"""What is changed about a selection, one thing at a time, and what was then chosen."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import cache, cached_property, partial
from types import MappingProxyType

from tabon.encoders import Encoder
from tabon.encoders.sentence_store import SentenceStore
from tabon.errors import EncoderError, MissingExtraError, TabonError
from tabon.evaluation import Picks
from tabon.evaluation.controls.changes import (
    ControlSelector,
    Recut,
    Split,
    clauses,
    encoded_anew,
    nested_banks,
    other_priors,
    other_sections,
    recut,
    select_in_batches,
    whole_section,
)
from tabon.evaluation.curves import pick_with, unchanged_distances
from tabon.method.bank import TransitionBank
from tabon.method.distances import distance_name
from tabon.selectors import Scorer, Selector, load_scorer
from tabon.text.records import Query
from tabon.text.reports import SECTIONS, Report
from tabon.text.sentences import split_sentences

DRAFTS = (2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
NEIGHBOURS = (1, 2, 3, 5, 10, 20, 50)
HISTORY = 0.5
RIGHT = "right prior"
OTHER = "other patient's prior"
NONE = "no prior"

PLAIN = frozenset({"consensus", "modex", "longest", "shortest", "first", "random", "log-probability"})
NO_PRIOR = PLAIN | {"report-space"}  # selectors that never look at the prior
NO_BANK = PLAIN | {"nearest-prior"}  # selectors that never look at the bank


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """What a selector chose under one condition."""

    selector: str  # "novelty/min"
    group: str  # a key of CONDITIONS
    label: str  # "other patient's prior"
    picks: tuple[Picks, ...]  # one for each seed; the row is their mean
    x: int | None = None  # its place on a curve
    drafts: int | None = None  # only so many drafts of each study count
    studies: frozenset[str] | None = None  # only these count
    like_length: bool = False  # compared with drafts of similar length, not with all

    @property
    def comparable(self) -> bool:
        """Say whether the row has the same studies, drafts and baseline as the right prior's."""
        return self.drafts is None and self.studies is None and not self.like_length

    @property
    def method(self) -> str:
        """Return the name of the row in results."""
        return f"{self.selector} | {self.label}"

    def left_out(self, reason: object) -> "LeftOut":
        """Say why the row is not there."""
        return LeftOut(selector=self.selector, group=self.group, label=self.label, reason=str(reason))


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """A condition that could not be tried, and why."""

    selector: str
    group: str
    label: str
    reason: str


@dataclass(frozen=True, kw_only=True, eq=False)
class Trial:
    """One selector, the queries it is tried on, and all that the conditions need."""

    name: str  # what `--selector` calls it
    bank: TransitionBank
    queries: tuple[Query, ...]
    encoder: Encoder  # the bank's
    split: Split = field(default_factory=lambda: cache(split_sentences))  # no text twice
    other_encoder: Callable[[], Encoder] | None = None
    store: SentenceStore | None = None
    seed: int = 0
    shuffles: int = 5
    allow_bank_patients: bool = False

    @property
    def selector(self) -> str:
        """Return the name in tables: the paper's methods as the paper has them, such as novelty/min."""
        return self.name.removeprefix("transition:")

    @property
    def kind(self) -> str:
        """Return the name without its variant."""
        return self.name.partition(":")[0]

    @cached_property
    def scorer(self) -> Scorer:
        """Load the selector on the bank, once."""
        return load_scorer(self.name, self.bank)

    def chosen(  # each is one thing that a condition changes
        self,
        control: str,
        *,
        queries: Sequence[Query] | None = None,
        bank: TransitionBank | None = None,
        encoder: Encoder | None = None,
        cut: Recut | None = None,
        history: float = 0.0,
    ) -> Picks:
        """Choose with one thing changed; `control` names it in the signature."""
        selector = ControlSelector(
            bank or self.bank,
            self.scorer if bank is None else load_scorer(self.name, bank),
            encoder=encoder or self.encoder,
            split=self.split if cut is None else lambda text: cut(self.split(text)),
            history=history,
            store=self.store,
            allow_bank_patients=self.allow_bank_patients,
        )
        asked = self.queries if queries is None else queries
        signature = f"{selector.signature}|control:{control}" if control else selector.signature
        return Picks.of(self.selector, asked, select_in_batches(selector, asked), signature)

    def right(self) -> Row:
        """Choose as it should be done."""
        return self.row("prior", RIGHT, self.chosen(""))

    def row(self, group: str, label: str, *picks: Picks) -> Row:
        """Return a row of this selector."""
        return Row(selector=self.selector, group=group, label=label, picks=picks)


Condition = Callable[[Trial, Picks], Iterator[Row | LeftOut]]  # the picks with the right prior are given


def with_priors(trial: Trial, _right: Picks) -> Iterator[Row | LeftOut]:
    """Choose with other patients' priors and, where that can be, with none."""
    if trial.kind not in NO_PRIOR:

        def exchanged(seed: int) -> Picks:
            return trial.chosen(f"other-prior-{seed}", queries=other_priors(trial.queries, seed))

        seeds = range(trial.seed, trial.seed + trial.shuffles)
        yield from _tried(trial, "prior", OTHER, *(partial(exchanged, seed) for seed in seeds))
    if not trial.scorer.needs_prior:
        bare = [replace(query, prior=Report(), earlier=()) for query in trial.queries]
        yield trial.row("prior", NONE, trial.chosen("no-prior", queries=bare))


def with_other_section(trial: Trial, _right: Picks) -> Iterator[Row | LeftOut]:
    """Score findings against the changes of impressions, and impressions against those of findings."""
    if trial.kind not in NO_BANK:
        label = "other section's bank"
        bank = other_sections(trial.bank)
        yield from _tried(trial, "section", label, partial(trial.chosen, "other-section", bank=bank))


def with_fewer_patients(trial: Trial, right: Picks) -> Iterator[Row | LeftOut]:
    """Choose with banks of 1/64, 1/32, … of the patients, each within the next, and with the whole bank."""
    if trial.kind in NO_BANK:
        return
    for sized in nested_banks(trial.bank, trial.seed):
        label = "the whole bank" if sized.share == 1 else f"{Fraction(sized.share)} of the bank's patients"
        control = f"bank-{Fraction(sized.share)}"
        choose = (lambda: right) if sized.share == 1 else partial(trial.chosen, control, bank=sized.bank)
        for row in _tried(trial, "bank-size", label, choose):
            yield replace(row, x=sized.patients) if isinstance(row, Row) else row


def with_fewer_drafts(trial: Trial, right: Picks) -> Iterator[Row | LeftOut]:
    """Choose among the first 2, 3, … drafts of each study, up to 64 or all there are."""
    most = min(max((len(query.candidates) for query in trial.queries), default=0), DRAFTS[-1])
    everyone = all(len(query.candidates) <= most for query in trial.queries)
    for count in sorted({most, *(count for count in DRAFTS if count < most)} - {0, 1}):
        picks = right
        if count < most or not everyone:
            first = [
                replace(query, candidates=query.candidates[:count], draft_facts=query.draft_facts[:count])
                for query in trial.queries
            ]
            picks = trial.chosen(f"drafts-{count}", queries=first)
        yield replace(trial.row("drafts", f"{count} drafts", picks), x=count, drafts=count)


def with_other_neighbours(trial: Trial, _right: Picks) -> Iterator[Row | LeftOut]:
    """Choose by the mean of the nearest 1, 2, … 50 transitions (paper's methods); 1 is `min`."""
    if trial.kind != "transition":
        return
    distance = trial.selector.partition("/")[0] or "novelty"
    sizes = [len(trial.bank.pairs[section].present()) for section in SECTIONS]
    counts = [count for count in NEIGHBOURS if count <= min(size for size in sizes if size)]
    selector = Selector(
        trial.bank,
        distance=distance_name(distance),
        aggregate="knn",
        num_neighbours=counts[-1],
        encoder=trial.encoder,
        store=trial.store,
        allow_bank_patients=trial.allow_bank_patients,
    )
    found = select_in_batches(selector, trial.queries)
    for count in counts:
        still = unchanged_distances(selector, count)
        chosen = [replace(selection, selected=pick_with(selection, count, still)) for selection in found]
        signature = f"{selector.signature}|control:neighbours-{count}"
        picks = Picks.of(trial.selector, trial.queries, chosen, signature)
        yield replace(trial.row("neighbours", f"knn, k = {count}", picks), x=count)


def with_other_encoder(trial: Trial, _right: Picks) -> Iterator[Row | LeftOut]:
    """Embed the bank and the queries with another encoder."""
    if trial.other_encoder is None:
        return
    try:
        encoder = trial.other_encoder()
    except (EncoderError, MissingExtraError) as error:
        yield trial.row("encoder", "another encoder").left_out(error)
        return
    if encoder.fingerprint == trial.encoder.fingerprint:
        yield trial.row("encoder", "another encoder").left_out("it is the bank's own; name another one")
        return
    label = f"encoder {encoder.fingerprint.encoder}"
    bank = encoded_anew(trial.bank, encoder, trial.store)
    choose = partial(trial.chosen, "other-encoder", bank=bank, encoder=encoder)
    yield from _tried(trial, "encoder", label, choose)


def with_other_pieces(trial: Trial, _right: Picks) -> Iterator[Row | LeftOut]:
    """Take a whole section as one sentence, or clauses as sentences."""
    for label, control, cut in (
        ("whole section as one sentence", "whole-section", whole_section),
        ("clauses as sentences", "clauses", clauses),
    ):
        bank = recut(trial.bank, cut, trial.encoder, trial.store)
        yield from _tried(trial, "splitter", label, partial(trial.chosen, control, bank=bank, cut=cut))


def with_like_length(trial: Trial, right: Picks) -> Iterator[Row | LeftOut]:
    """Compare the picks with drafts of similar length only."""
    row = trial.row("length", "against drafts of like length", right)
    yield replace(row, like_length=True)


def with_history(trial: Trial, _right: Picks) -> Iterator[Row | LeftOut]:
    """Weigh older priors too, in the studies that have several; right prior is the newest alone."""
    several = frozenset(query.id for query in trial.queries if len(query.priors) > 1)
    if several and trial.kind not in NO_PRIOR:
        picks = trial.chosen(f"history-{HISTORY:g}", history=HISTORY)
        yield replace(trial.row("history", f"all priors, history {HISTORY:g}", picks), studies=several)


def _tried(trial: Trial, group: str, label: str, *choices: Callable[[], Picks]) -> Iterator[Row | LeftOut]:
    """Yield the row, or why there is none: a bank may be too small for a method."""
    try:
        yield trial.row(group, label, *(choose() for choose in choices))
    except TabonError as error:
        yield trial.row(group, label).left_out(error)


CONDITIONS: Mapping[str, Condition] = MappingProxyType(
    {
        "prior": with_priors,
        "section": with_other_section,
        "length": with_like_length,
        "encoder": with_other_encoder,
        "splitter": with_other_pieces,
        "history": with_history,
        "bank-size": with_fewer_patients,
        "drafts": with_fewer_drafts,
        "neighbours": with_other_neighbours,
    }
)
HEADINGS = ("Prior", "Section of the bank", "Length", "Encoder", "Splitter", "Several priors", "Bank size")
GROUP_NAMES: Mapping[str, str] = MappingProxyType(
    dict(zip(CONDITIONS, (*HEADINGS, "Drafts (K)", "Neighbours (k)"), strict=True))
)
CURVES: Mapping[str, tuple[str, str]] = MappingProxyType(  # name and x of the groups that are curves
    {
        "bank-size": ("bank-size curve", "patients in the bank"),
        "drafts": ("K-curve", "drafts (K)"),
        "neighbours": ("k-curve", "neighbours (k)"),
    }
)
