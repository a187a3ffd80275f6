"""METEOR of a draft: NLTK's alignment and formula, with the synonyms of a local WordNet.

NLTK's corpus reader opens only folders on its own search path, which is the
process's and not ours to change. So WordNet's files are read here: what METEOR
asks of them is which words share a synset with a word.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache, partial
from hashlib import sha256
from importlib.metadata import version
from importlib.resources.abc import Traversable
from pathlib import Path
from types import MappingProxyType, SimpleNamespace
from typing import Any
from zipfile import Path as ZipPath
from zipfile import is_zipfile

import numpy as np

from tabon._internal.extras import require
from tabon.errors import MetricUnavailableError
from tabon.metrics.protocol import Metric, Pair, Score, Statistics, mean_of

ALPHA, BETA, GAMMA = 0.9, 3.0, 0.5  # NLTK's defaults
KEPT_WORDS = 2**16
REMEDY = (
    "give a folder with WordNet's files (index.*, data.*, *.exc), such as NLTK's nltk_data or the one in "
    "Debian's wordnet-base; or fetch it with: python -m nltk.downloader wordnet"
)
_TOKEN = re.compile(r"\w+|[^\w\s]+")  # the rule of NLTK's wordpunct_tokenize
_MARKER = re.compile(r"\([^()]*\)$")  # an adjective's place, as in "alive(p)"

ENDINGS: Mapping[str, str] = MappingProxyType(
    {  # part of speech, in NLTK's order: endings, and what the base form has instead of them
        "noun": "s: ses:s ves:f xes:x zes:z ches:ch shes:sh men:man ies:y",
        "verb": "s: ies:y es:e es: ed:e ed: ing:e ing:",
        "adj": "er: est: er:e est:e",
        "adv": "",
    }
)
FILES = tuple(name for part in ENDINGS for name in (f"index.{part}", f"data.{part}", f"{part}.exc"))


def words_and_signs(text: str) -> list[str]:
    """Return runs of word characters and runs of other signs, lower-cased.

    >>> words_and_signs("No effusion, 3.5 cm.")
    ['no', 'effusion', ',', '3', '.', '5', 'cm', '.']
    """
    return _TOKEN.findall(text.lower())


def _first_fields(lines: bytes) -> dict[str, str]:
    """Return the lines by their first field; those of the licence begin with a blank."""
    rows = (line for line in lines.decode().split("\n") if line and not line.startswith(" "))
    return {row.partition(" ")[0]: row for row in rows}


@dataclass(frozen=True, slots=True)
class PartOfSpeech:
    """WordNet's nouns, verbs, adjectives or adverbs."""

    name: str
    index: Mapping[str, str]  # a lemma's line, which ends in the offsets of its synsets
    exceptions: Mapping[str, str]  # a form's line: the form, then its base forms
    data: bytes = field(repr=False)

    def synonyms(self, word: str) -> Iterator[str]:
        """Yield the lemmas of all synsets of all base forms of a word."""
        for form in self._base_forms(word):
            fields = self.index[form].split()
            for offset in fields[len(fields) - int(fields[2]) :]:
                start = int(offset)
                synset = self.data[start : self.data.find(b"\n", start)].decode().split()
                if synset[:1] != [offset]:  # cut, or its line ends were changed
                    reason = f"data.{self.name} does not fit index.{self.name}"
                    raise MetricUnavailableError("meteor", reason, REMEDY)
                yield from (_MARKER.sub("", name) for name in synset[4 : 4 + 2 * int(synset[3], 16) : 2])

    def _base_forms(self, word: str) -> list[str]:
        """Return the forms in the index: the word, and its exceptions or else what its endings give."""
        if word in self.exceptions:
            forms = self.exceptions[word].split()
        else:
            endings = (pair.split(":") for pair in ENDINGS[self.name].split())
            forms = [word, *(word.removesuffix(old) + new for old, new in endings if word.endswith(old))]
        return [form for form in dict.fromkeys(forms) if form in self.index]


@dataclass(frozen=True, slots=True)
class Lemma:
    """A word as NLTK's alignment asks for it."""

    word: str

    def name(self) -> str:
        """Return the word."""
        return self.word


@dataclass(frozen=True, slots=True)
class WordNet:
    """The synonyms of a WordNet; NLTK's alignment calls `synsets`, which remembers."""

    sha256: str  # of FILES, one after another
    synsets: Callable[[str], list[Any]] = field(repr=False)


def read_wordnet(folder: Traversable) -> WordNet:
    """Read WordNet's files from a folder, or from one in a zip file."""
    files = {name: (folder / name).read_bytes() for name in FILES}
    parts = [
        PartOfSpeech(
            name=part,
            index=_first_fields(files[f"index.{part}"]),
            exceptions=_first_fields(files[f"{part}.exc"]),
            data=files[f"data.{part}"],
        )
        for part in ENDINGS
    ]

    @lru_cache(maxsize=KEPT_WORDS)
    def synsets(word: str) -> list[Any]:
        found = dict.fromkeys(name for part in parts for name in part.synonyms(word))
        lemmas = tuple(Lemma(name) for name in found if "_" not in name)
        return [SimpleNamespace(lemmas=lambda: lemmas)]  # all synonyms as one synset of NLTK

    return WordNet(sha256(b"".join(files.values())).hexdigest(), synsets)


def _places(root: Path) -> Iterator[Traversable]:
    """Yield where WordNet may be under a folder: NLTK's layout, zipped or not, or its own."""
    for folder in (root, root / "wordnet", root / "corpora" / "wordnet"):
        yield folder
        archive = folder.with_suffix(".zip")
        if is_zipfile(archive):
            yield ZipPath(archive, "wordnet/")


def find_wordnet(roots: Iterable[Path]) -> Traversable:
    """Return where the first WordNet under these folders is.

    Raises:
        MetricUnavailableError: none of them holds all of FILES.
    """
    searched = list(roots)
    for place in (place for root in searched for place in _places(root)):
        if all((place / name).is_file() for name in FILES):
            return place
    several = "NLTK's search path" if searched else "an empty search path"
    where = str(searched[0]) if len(searched) == 1 else several
    raise MetricUnavailableError("meteor", f"no WordNet in {where}", REMEDY)


@dataclass(frozen=True, slots=True)
class Tokenizer:
    """How a text is cut for METEOR, and the metric's name with it."""

    metric: str
    name: str
    tokens: Callable[[str], list[str]] = field(repr=False)


WORDS_AND_SIGNS = Tokenizer("meteor", "words-and-signs", words_and_signs)
SPLIT = Tokenizer("split_meteor", "white-space", lambda text: text.lower().split())


@dataclass(frozen=True, slots=True)
class Meteor:
    """METEOR, the mean over drafts; made by `load` and `load_split`."""

    wordnet: WordNet
    _stem: Callable[[str], str] = field(repr=False)  # Porter's, asked once for each word
    _single_meteor_score: Any = field(repr=False)  # NLTK's
    _tokenizer: Tokenizer = WORDS_AND_SIGNS

    @property
    def name(self) -> str:
        """Return the metric's name."""
        return self._tokenizer.metric

    @property
    def statistics(self) -> tuple[str, ...]:
        """Return the one column."""
        return (self.name,)

    @property
    def scores(self) -> tuple[Score, ...]:
        """Return the one score."""
        return (Score(self.name, mean_of(0)),)

    @property
    def signature(self) -> str:
        """Return parameters, tokens, case, stemmer and the WordNet's digest, with NLTK's version."""
        cut = self._tokenizer.name
        parameters = f"alpha:{ALPHA}|beta:{BETA}|gamma:{GAMMA}|tokenizer:{cut}|case:lower|stemmer:porter"
        return f"{self.name}|{parameters}|wordnet:{self.wordnet.sha256[:12]}|nltk:{version('nltk')}"

    def measure(self, pairs: Sequence[Pair]) -> Statistics:
        """Return one row per pair: the score of the draft."""
        score = partial(
            self._single_meteor_score,
            stemmer=SimpleNamespace(stem=self._stem),
            wordnet=self.wordnet,
            alpha=ALPHA,
            beta=BETA,
            gamma=GAMMA,
        )
        cut = self._tokenizer.tokens
        scores = [score(cut(pair.reference), cut(pair.candidate)) for pair in pairs]
        return np.array(scores, dtype=np.float64).reshape(len(pairs), 1)


def load(model: Path | None = None) -> Metric:
    """Return METEOR with the WordNet in a folder, or with the one on NLTK's search path.

    Raises:
        MetricUnavailableError: there is no WordNet.
    """
    return _load(model, WORDS_AND_SIGNS)


def load_split(model: Path | None = None) -> Metric:
    """Return METEOR of words cut at white space alone: "clear." is another word than "clear"."""
    return _load(model, SPLIT)


def _load(model: Path | None, tokenizer: Tokenizer) -> Metric:
    """Read the WordNet and take NLTK's parts."""
    scoring = require("nltk.translate.meteor_score", extra="metrics", feature="METEOR")
    porter = require("nltk.stem.porter", extra="metrics", feature="METEOR")
    data = require("nltk.data", extra="metrics", feature="METEOR")
    folder = find_wordnet([model] if model else [Path(root) for root in data.path])
    stem = lru_cache(maxsize=KEPT_WORDS)(porter.PorterStemmer().stem)
    return Meteor(read_wordnet(folder), stem, scoring.single_meteor_score, tokenizer)
