"""One section's text to its sentences (the splitter of eq. 1).

sentencex proposes where sentences end. Radiology text needs rules before and
after it, because it is full of lists, wrapped lines and abbreviations:

    section ─▶ items (lines, list markers) ─▶ proposals of sentencex ─▶ less abbreviations ─▶ sentences

sentencex sees a masked copy of the same length, so it only ever says *where* to
cut; no character can be lost or changed by it. It sees at most `_WINDOW`
characters at a time, because it needs quadratic time on text without blanks.

Most text needs few of the rules. A rule that takes time is asked only where a
cheaper test (`_MAY_...`, `_is_plain`) does not show that it would change nothing.
"""

import re
from collections.abc import Iterator
from functools import lru_cache
from importlib.metadata import version
from typing import Final, NamedTuple

import sentencex

from tabon.text.reports import DEIDENTIFIED, begins_with_a_word

SPLITTER: Final = "tabon-sentences-1+sentencex-" + version("sentencex")
"""Any change in behaviour bumps the first number."""

_DEIDENTIFIED = re.compile(DEIDENTIFIED)

# --- abbreviations: does the sentence go on after their period? -----------------------

LEADING: Final = (
    r"drs?|mrs?|ms|prof|st|vs|v|approx|approximat|ca|cf|e\.g|i\.e|eg|ie|figs?|viz|incl|esp|c/w|w|s/p|r/o"
)
"""Never end a sentence: "approx. 3 cm", "Dr. Smith"."""

MODIFIERS: Final = (
    r"temp|bilat|ant|post|lat|rt|lt|sup|inf|prox|dist|pulm|resp|card|abd|thor|lumb|cerv|max|avg|est|prev|"
    r"med|ext|int|mod|mult|diam"
)
"""End a sentence only before a word that opens sentences: "bilat. PICC lines"."""

TRAILING: Final = (
    r"cm|mm|ml|cc|kg|lbs?|in|ft|a\.m|p\.m|m\.d|d\.o|r\.n|ph\.d|p\.a|n\.p|u\.s|y\.o|etc|al|fxs?|neg|pos|hx|dx|"
    r"tx|rx|sx|pts?|yrs?|hrs?|mins?|sec|wks?|mos?|jr|sr|dept|hosp|vol|abn|f/u"
)
"""End a sentence unless a small letter follows: "fx. of rib 4", but "at 3 p.m. No change"."""

COUNTED: Final = r"nos?|figs?|approx|ca|temp|vs"
"""Go on before a number: "lead no. 2"."""

_MISREAD = (
    r"ct|pa|may|art|ill|miss|rep|col|gen|ore|sat|sun|mar"  # no abbreviations here, to sentencex they are
)
_OPENER = re.compile(
    r"(?:the|there|this|these|no|heart|lungs?|cardiac|cardio\w*|mediastin\w*|pulmonary|pleural|bones?|osseous|"
    r"stable|unchanged|findings?|impression|comparison|if|please|otherwise|normal|clear|interval)\b",
    re.IGNORECASE,
)
_CLOSERS = ")]}\"'\u2019\u201d\u00bb"
_LONGEST_ABBREVIATION = 16


def _last_word(words: str) -> re.Pattern[str]:
    """A pattern for text that ends in one of the words and a period."""
    return re.compile(rf"(?<![^\W_])(?:{words})\.[{re.escape(_CLOSERS)}]*\Z", re.IGNORECASE)


_ENDS_LEADING, _ENDS_MODIFIER = _last_word(LEADING), _last_word(MODIFIERS)
_ENDS_TRAILING, _ENDS_COUNTED = _last_word(TRAILING), _last_word(COUNTED)


def _goes_on(before: str, after: str) -> bool:
    """Whether the period between two texts belongs to an abbreviation."""
    if _ENDS_LEADING.search(before):
        return True
    if after[:1].isdigit():
        return _ENDS_COUNTED.search(before) is not None
    opens = _OPENER.match(after) is not None
    if _ENDS_MODIFIER.search(before):
        return not (opens and after[:1].isupper())
    return not opens and after[:1].islower() and _ENDS_TRAILING.search(before) is not None


# --- lines to items -------------------------------------------------------------------

_EMPHASIS = re.compile(
    rf"(?P<keep>{DEIDENTIFIED})|(?<!\d)\*+|\*+(?!\d)|(?<!_)__(?!_)|(?<!\w)_(?=[^\W_])|(?<=[^\W_])_(?!\w)|`+"
)
_MAY_STRESS = re.compile(r"[*_`]")
_DOTS = r"\u2022\u2023\u25aa\u25cf\u25e6\u25cb\u2043"
_DASHES = r"\u2013\u2014-"
_BULLET = re.compile(rf"[{_DOTS}]+\s*|[*+#>\u00b7]+(?:\s+|\Z)|[{_DASHES}]+(?=\s|[^\W\d_]|\Z)\s*")
_MARKER = r"(?:\(?(?:\d{1,2}|[a-h])\)|#?\d{1,2}\.[),]?)(?:\s+(?=\S)|(?=[^\W\d_]))"
_NUMBER = re.compile(_MARKER)
_LABEL = re.compile(r"[A-Z][A-Za-z/,&() -]{0,40}:(?:\s|\Z)")
_HEADING = re.compile(r"\s*(?:#{1,6}\s|(?:\*\*|__)[^*_]{1,40}(?:\*\*|__)\s*\Z)")
_OPEN_END = re.compile(
    r"(?:[,;/(-]|(?<![^\W_])(?:a|an|and|are|as|at|be|by|for|from|has|have|in|into|is|large|left|lower|mild|moderate|"
    r"new|no|of|on|or|prior|right|small|stable|than|that|the|to|upper|versus|vs|was|were|which|with|without))\Z",
    re.IGNORECASE,
)
_NARROWEST_PAGE = 60  # nobody wraps text at fewer columns


class _Line(NamedTuple):
    text: str  # without bullet and emphasis
    starts_item: bool
    is_heading: bool


def _line(raw: str) -> _Line:
    """One line of text: what it says and whether it begins something."""
    text, bulleted = _without_marks(raw)
    begins = bulleted or _NUMBER.match(text) is not None or _LABEL.match(text) is not None
    return _Line(text, begins, _HEADING.match(raw) is not None)


def _without_marks(raw: str) -> tuple[str, bool]:
    """A line without bullets and emphasis, and whether bullets stood before it."""
    stripped = raw.strip()
    bare = stripped[_bullets_end(stripped) :]
    if _MAY_STRESS.search(bare):
        text = " ".join(_EMPHASIS.sub(lambda found: found["keep"] or "", bare).split())
    else:
        text = " ".join(bare.split())
    return text[_bullets_end(text) :], len(bare) < len(stripped)


def _bullets_end(text: str) -> int:
    """How long the bullets at the beginning of a text are."""
    end = 0
    while found := _BULLET.match(text, end):
        end = found.end()
    return end


def _stops_short(line: str, following: str) -> bool:
    """Whether a line ends where no wrapping would have ended it.

    >>> _stops_short("Lungs are clear", "No effusion"), _stops_short("Small nodule in the", "RUL")
    (True, False)
    """
    word = following.split(" ", 1)[0]
    fits = len(line) + len(word) < _NARROWEST_PAGE
    return fits and word[:1].isupper() and not _DEIDENTIFIED.match(word) and not _OPEN_END.search(line)


def _breaks(line: _Line, following: _Line) -> bool:
    """Whether the next line begins another item."""
    if line.is_heading or line.text.endswith(":"):
        return False
    if following.starts_item:
        return _COUNTED_NOUN.search(line.text) is None
    return _stops_short(line.text, following.text)


def _items(text: str) -> Iterator[str]:
    """Unwrap lines; blank lines, list lines, labels and short stops begin an item."""
    raw_lines = text.splitlines()
    if len(raw_lines) == 1:
        yield _without_marks(text)[0]
        return
    lines: list[_Line] = []
    gap = False
    for line in map(_line, raw_lines):
        if not line.text:
            gap = bool(lines) and not (lines[-1].is_heading or lines[-1].text.endswith(":"))
            continue
        if lines and (gap or _breaks(lines[-1], line)):
            yield " ".join(part.text for part in lines)
            lines.clear()
        lines.append(line)
        gap = False
    yield " ".join(part.text for part in lines)


# --- lists inside a line ----------------------------------------------------------------

_MISSING_BLANK = re.compile(
    r"(?:(?<=[^\W\d_]{2})|(?<=\.[^\W\d_])|(?<=\d)|(?<=[)\]_%]))[.!?]+(?=[A-Z][A-Za-z])"
    rf"|(?<=[a-z]{{3}})[.!?]+(?=\d|{_OPENER.pattern})"
)
_MAY_RUN_ON = re.compile(r"[.!?]\w")
_INLINE_MARKER = re.compile(
    rf"(?:\A|(?<=\s))(?P<number>{_MARKER})|[{_DOTS}]+\s*|(?<=[.!?;:]\s)[*{_DASHES}]+\s+(?=\S)"
)
_MAY_COUNT = re.compile(
    rf"[.){_DOTS}*{_DASHES}](?:(?<=\d[.)])|(?<=[a-h]\))|(?<=[{_DOTS}])|(?<=[*{_DASHES}])(?=\s))"
)
_COUNTED_NOUN = re.compile(
    r"(?<![^\W_])(?:(?:nos?|figs?|approx)\.|(?:ribs?|levels?|segments?|grades?|stages?|types?|zones?|class|phase|"
    r"number|images?|series|views?|days?|leads?|figures?|of|and|to|or|by|than|with|times|is|was|are|[a-z]),?)\Z",
    re.IGNORECASE,
)


def _with_blanks(item: str) -> str:
    """An item with the blanks that miss after its periods."""
    return _MISSING_BLANK.sub(lambda found: found[0] + " ", item) if _MAY_RUN_ON.search(item) else item


def _is_marker(text: str, found: re.Match[str], start: int, last: int) -> bool:
    """Whether a number in running text counts an item rather than a rib.

    It does at the start and after a sentence's end; elsewhere only where it goes on
    counting, before a capital, and after a word that takes no number.
    """
    before = text[max(start, found.start() - 24) : found.start()].rstrip()
    if not before or found["number"] is None:
        return True
    if _COUNTED_NOUN.search(before):
        return False
    goes_on_counting = _value(found) in {1, last + 1}
    after = text[found.end()]
    if before[-1] in ".!?:;" or (before[-1] == "," and ")" in found["number"]):
        return goes_on_counting or not after.isdigit()
    return goes_on_counting and after.isupper()


def _value(found: re.Match[str]) -> int:
    """The number of an item; (a) is 1, a bullet has none."""
    label = "".join(filter(str.isalnum, found["number"] or "0"))
    return int(label) if label.isdecimal() else ord(label) - ord("a") + 1


def _listed(item: str) -> Iterator[str]:
    """Split an item at the markers of a list within it, and drop them."""
    if not _MAY_COUNT.search(item):
        yield item
        return
    start = last = 0
    kept: list[str] = []
    for found in _INLINE_MARKER.finditer(item):
        if not _is_marker(item, found, start, last):
            continue
        kept.append(item[start : found.start()].rstrip())
        start, last = found.end(), _value(found)
        if not kept[-1].endswith(":"):  # "Chest: 1. Clear" keeps its label
            yield " ".join(kept)
            kept.clear()
    yield " ".join((*kept, item[start:]))


# --- sentences --------------------------------------------------------------------------

_WINDOW = 2000
_ABBREVIATIONS = f"{LEADING}|{MODIFIERS}|{TRAILING}|{COUNTED}|{_MISREAD}"
_HIDDEN = re.compile(
    rf"(?P<word>{DEIDENTIFIED}|(?<![^\W_])(?=[a-z./]{{1,10}}[)\]]?\.)(?:{_ABBREVIATIONS})(?=[)\]]?\.)|[\ud800-\udfff])"
    rf"|(?P<letter>(?<![^\W_])[A-Za-z](?=\.\s{_OPENER.pattern}))"
    r"|[\"'\u2018\u2019\u201a\u201b\u201c\u201d\u201e\u201f\u00ab\u00bb()\[\]{}<>]",
    re.IGNORECASE,
)


def _mask(found: re.Match[str]) -> str:
    """A stand-in of the same length that means nothing to sentencex."""
    if found["word"] is not None:
        return _mask_token(found)
    return "0" if found["letter"] else " "


def _mask_token(found: re.Match[str]) -> str:
    """A stand-in of the same length that is one word to sentencex."""
    return "Z".ljust(len(found[0]), "z")


_PLAIN = re.compile(r"[A-Za-z0-9 ,.;:/%&+=_-]*")
_MAY_NAME = re.compile(r"[Xx_][Xx_]{2}")  # a set that comes first is looked for faster than a repeat
_ABBREVIATION = re.compile(_ABBREVIATIONS, re.IGNORECASE)


def _is_plain(text: str) -> bool:
    """Whether nothing but de-identification tokens would be hidden: no quotes, no abbreviations."""
    if not _PLAIN.fullmatch(text):
        return False
    words = [part.rpartition(" ")[2] for part in text.split(".")[:-1]]
    return all(map(_may_end, words))


@lru_cache(maxsize=1 << 12)
def _may_end(word: str) -> bool:
    """Whether a word before a period, up to the blank before it, is certainly no abbreviation."""
    if not word[-1:].isalpha():
        return True
    return len(word) > 1 and word.isalpha() and not _ABBREVIATION.fullmatch(word)


def _proposals(text: str, masked: str) -> Iterator[int]:
    """Where sentencex would end a sentence, with the closing brackets and quotes."""
    start = 0
    while start < len(text):
        stop, here = min(start + _WINDOW, len(text)), start
        if stop < len(text):  # the next window begins after a period where there is one
            period = text.rfind(". ", start, stop)
            stop = period + 1 if period > start else stop
        for piece in sentencex.segment("en", masked[start:stop]):
            end = here + len(piece.rstrip())
            here += len(piece)
            while end < stop and text[end] in _CLOSERS:
                end += 1
            if end < stop or text[end - 1] == ".":
                yield end
        start = stop


def _ends(text: str) -> list[int]:
    """Where sentences really end."""
    if _is_plain(text):
        masked = _DEIDENTIFIED.sub(_mask_token, text) if _MAY_NAME.search(text) else text
        ends = [end for end in _proposals(text, masked) if text[end : end + 1] == " "]
    else:
        ends = [end for end in _proposals(text, _HIDDEN.sub(_mask, text)) if _is_end(text, end)]
    return [*ends, len(text)]


def _is_end(text: str, end: int) -> bool:
    """Whether a sentence ends here: at a blank, not after an abbreviation or the "?" of "? edema"."""
    blank = text[end : end + 1].isspace() or not text[end - 1 : end].isascii()
    before, after = text[max(0, end - _LONGEST_ABBREVIATION) : end], text[end : end + 32]
    doubt = before.endswith("?") and not before[-2:-1].strip()
    return blank and not doubt and not _goes_on(before, after.lstrip(" (['\""))


_DEBRIS = re.compile(r"\A[.!,;:)\s]*\s")
_DOUBLE_PERIOD = re.compile(r"(?<!\.)\.\.\Z")  # a slip of the keyboard; three are an ellipsis


def _sentences(item: str) -> list[str]:
    """The sentences of one item, without what an earlier one left before them."""
    sentences, start = [], 0
    for end in _ends(item):
        sentence = item[start:end].strip()
        start = end
        begins = begins_with_a_word(sentence)
        if not begins:
            bare = _DEBRIS.sub("", sentence)
            sentence = bare[_bullets_end(bare) :]
        if sentence.endswith(".."):
            sentence = _DOUBLE_PERIOD.sub(".", sentence)
        if begins or any(map(str.isalnum, _DEIDENTIFIED.sub("", sentence))):  # it says something
            sentences.append(sentence)
    return sentences


_WORDS = r"[A-Za-z0-9 ,;:/%&+=]*+"
_SIMPLE = re.compile(rf"[A-Za-z]{_WORDS}(?:(?:-(?=[A-Za-z0-9])|(?<=[A-Za-z]{{2}})\.(?= |\Z)){_WORDS})*+")


def _is_simple(text: str) -> bool:
    """Whether a text is one line of words in which nothing is marked, counted or run together."""
    return _SIMPLE.fullmatch(text) is not None and "  " not in text


_MARK = re.compile(r"[^\w\s,\-]|[\r\n\v\f\x1c-\x1e\x85\u2028\u2029]")


def most_sentences(text: str) -> int:
    """A bound on the number of sentences, without splitting: each but the last ends at a mark or a line.

    >>> most_sentences("Nodule of approx. 3 mm. No effusion.")
    4
    """
    return 1 + sum(1 for _ in _MARK.finditer(text))


@lru_cache(maxsize=1 << 13)  # a study's texts are looked at by many: each is split once
def split_sentences(text: str) -> tuple[str, ...]:
    r"""Split one section into sentences, in their order, repeats included.

    List markers, markdown emphasis and "sentences" of mere punctuation or
    de-identification tokens are left out; runs of blanks become one blank and a
    doubled last period one period. Every other letter and digit stays. Never raises.

    Args:
        text: of one section.

    >>> split_sentences("1. Nodule of approx. 3 mm. 2. No effusion.")
    ('Nodule of approx. 3 mm.', 'No effusion.')
    >>> split_sentences("LUNGS: Clear.No focal\nconsolidation.")
    ('LUNGS: Clear.', 'No focal consolidation.')
    """
    if _is_simple(text):
        return tuple(_sentences(text))
    sentences: list[str] = []
    for item in _items(text):
        for entry in _listed(_with_blanks(item)):
            sentences += _sentences(entry.strip())
    return tuple(sentences)
