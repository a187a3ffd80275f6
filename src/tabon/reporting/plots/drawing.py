"""The canvas of every picture: one look, and the same bytes each time, as SVG, PDF or PNG.

No picture changes matplotlib's settings for others, and none depends on the
settings of whoever draws it.
"""

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from html import escape
from io import BytesIO
from itertools import cycle
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from tabon._internal.extras import require
from tabon.reporting.tables.places import method_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

INK, FAINT, RULE, BAND = "#1b1f2a", "#5b6475", "#c9d0db", "#f4f6f9"
GAIN, LOSS = "#0072B2", "#D55E00"  # seen as two by all readers, and in grey by their signs
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#AA4499", "#56B4E9", "#B8860B", "#4D4D4D")
MARKERS = ("o", "D", "s", "^", "v", "P")
DASHES = ("-", (0, (5, 2)), (0, (1.5, 1.5)), (0, (6, 2, 1.5, 2)))
MAKERS: Mapping[str, Mapping[str, None]] = MappingProxyType(
    {  # form: what matplotlib would say of itself and of the time
        "pdf": dict.fromkeys(("CreationDate", "Creator", "Producer")),
        "png": {"Software": None},
    }
)
FIGURE_FORMS = ("svg", *MAKERS)
DPI = 300  # of PNG, as printers ask
LONGEST_NAME = 36  # characters of a name in a picture
LETTER = 0.078  # inches that a letter takes, rather too many
SPARE = 1.05  # text is a little wider in some forms than in others
STYLE: Mapping[str, Any] = MappingProxyType(
    {
        "svg.hashsalt": "tabon",
        "svg.fonttype": "none",
        "pdf.fonttype": 42,  # TrueType: text can be searched, and journals take it
        "text.parse_math": False,
        "font.family": ["sans-serif"],
        "font.sans-serif": ["DejaVu Sans"],  # it measures the text; the reader's own shows it
        "font.size": 9.0,
        "figure.facecolor": "white",
        "text.color": INK,
        "axes.edgecolor": RULE,
        "axes.labelcolor": FAINT,
        "axes.spines.top": False,
        "axes.spines.right": False,
        "axes.titlesize": 9.5,
        "axes.titleweight": "bold",
        "axes.titlelocation": "left",
        "xtick.color": RULE,
        "ytick.color": RULE,
        "xtick.labelcolor": FAINT,
        "ytick.labelcolor": INK,
        "xtick.labelsize": 8.0,
        "ytick.labelsize": 9.0,
        "legend.frameon": False,
        "legend.fontsize": 8.5,
    }
)


@dataclass(frozen=True, slots=True)
class Look:
    """How a method is drawn: colour for its distance, shape and dashes for its aggregate."""

    colour: str
    marker: str
    dashes: Any


def looks(methods: Iterable[str]) -> dict[str, Look]:
    """Give each method its look: `novelty/min` and `novelty/knn` share a colour.

    >>> {name: (look.colour, look.marker) for name, look in looks(["a/min", "a/knn", "b/min"]).items()}
    {'a/min': ('#0072B2', 'o'), 'a/knn': ('#0072B2', 'D'), 'b/min': ('#D55E00', 'o')}
    """
    parts = {method: split_name(method) for method in methods}
    families = dict.fromkeys(family for family, _ in parts.values())
    variants = dict.fromkeys(variant for _, variant in parts.values())
    colours = dict(zip(families, cycle(COLOURS), strict=False))
    shapes = dict(zip(variants, zip(cycle(MARKERS), cycle(DASHES), strict=False), strict=False))
    return {method: Look(colours[family], *shapes[variant]) for method, (family, variant) in parts.items()}


def split_name(method: str) -> tuple[str, str]:
    """Part a method's name into distance and aggregate.

    >>> split_name("novelty/min"), split_name("longest")
    (('Novelty', 'min'), ('longest', ''))
    """
    family, _, variant = label(method_name(method)).partition("/")
    return family.strip(), variant.strip()


def label(name: str, longest: int = LONGEST_NAME) -> str:
    """Make a name fit to be drawn: printable and not too long.

    >>> label("an endless name", 8)
    'an endl…'
    """
    shown = "".join(letter if letter.isprintable() else "\ufffd" for letter in name)
    return shown if len(shown) <= longest else f"{shown[: longest - 1]}…"


def room_for(names: Iterable[str]) -> float:
    """Return the inches that the longest of some names needs."""
    return LETTER * max(map(len, names), default=0)


def percent(value: float) -> str:
    r"""Write a share with its sign.

    >>> percent(0.0815), percent(0.0), ascii(percent(-0.004))
    ('+8.2%', '0%', "'\\u22120.4%'")
    """
    text = f"{value:+.1%}".replace("-", "\u2212")
    return "0%" if text[1:] == "0.0%" else text


@contextmanager
def canvas() -> Iterator[None]:
    """Draw with our settings inside the block, whatever the settings outside are."""
    matplotlib = require("matplotlib", extra="plots", feature="matplotlib (for figures)")
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(STYLE)
        yield


def new_figure(width: float, height: float) -> "Figure":
    """Return an empty figure; sizes are in inches."""
    module = require("matplotlib.figure", extra="plots", feature="matplotlib (for figures)")
    figure: Figure = module.Figure(figsize=(width, height), layout="constrained")
    return figure


@dataclass(frozen=True)
class Drawing:
    """A finished figure, to be saved in any of FIGURE_FORMS; none holds a date or its maker."""

    figure: "Figure"
    title: str

    @cached_property
    def svg(self) -> str:
        """The figure as SVG text: titled, no document type, generic fonts."""
        text = self._as("svg", dict.fromkeys(("Date", "Creator", "Format", "Type"))).decode()
        start = text.index("<svg")
        end = text.index(">", start) + 1
        body = text[end:].replace("'DejaVu Sans', sans-serif", "sans-serif")
        return f"{text[start:end]}\n <title>{escape(self.title)}</title>{body}"

    def saved(self, form: str) -> bytes:
        """Return the bytes of a file."""
        if form == "svg":
            return self.svg.encode()
        return self._as(form, {**MAKERS[form], "Title": self.title})

    def _as(self, form: str, facts: dict[str, Any]) -> bytes:
        """Return what matplotlib writes; a fact that is None is left out."""
        file = BytesIO()
        with canvas():
            self.figure.savefig(file, format=form, dpi=DPI, metadata=facts)
        return file.getvalue()


def finished(figure: "Figure", title: str, note: str) -> Drawing:
    """Put the title above and the note below, both at the left; a figure too narrow for them is widened."""
    figure.suptitle(title, x=0.01, ha="left", fontsize=11, fontweight="bold")
    if note:
        figure.supxlabel(note, x=0.01, ha="left", fontsize=8, color=FAINT)
    figure.draw_without_rendering()
    widest = SPARE * max(text.get_window_extent().x1 for text in figure.texts) / figure.dpi
    if widest > figure.get_figwidth():
        figure.set_figwidth(widest)
        figure.draw_without_rendering()
    figure.set_layout_engine("none")  # it would move a little with each form that is saved
    return Drawing(figure, title)
