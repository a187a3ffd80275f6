"""A flag: one thing in a draft that a reader should look at."""

from dataclasses import dataclass
from typing import Final, Literal, get_args

from tabon.text.reports import Section

FlagKind = Literal[
    "dropped-finding",
    "denied-finding",
    "unsupported-finding",
    "contradicted-change",
    "change-without-prior",
    "side-flip",
    "copy-forward",
    "empty-draft",
    "chatty-draft",
]
FLAG_KINDS: Final[tuple[FlagKind, ...]] = get_args(FlagKind)
Place = Literal["findings", "impression", "other"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Flag:
    """One thing to look at, with the sentences concerned; it holds no report text."""

    kind: FlagKind
    section: Place | None = None  # of the draft
    sentences: tuple[int, ...] = ()  # indices in split_sentences of that section
    prior_section: Section | None = None
    prior_sentences: tuple[int, ...] = ()  # the same in the prior
    observation: str | None = None
    detail: str

    def __str__(self) -> str:
        """Say it in one line, with the sentences concerned, counted from 1."""
        places = [
            f"{whose} {section}, sentence {', '.join(str(number + 1) for number in numbers)}"
            for whose, section, numbers in (
                ("draft's", self.section, self.sentences),
                ("prior's", self.prior_section, self.prior_sentences),
            )
            if numbers
        ]
        return f"{self.kind}: {self.detail}" + (f" ({'; '.join(places)})" if places else "")
