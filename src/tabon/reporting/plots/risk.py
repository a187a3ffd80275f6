"""The risk of what is kept when the least plausible picks are left out."""

from collections.abc import Mapping

from tabon.reporting.plots.drawing import FAINT, RULE, canvas, label, looks, new_figure, svg, titled
from tabon.reporting.tables.places import method_name
from tabon.selectors.conformal import RiskCoverage


def risk_plot(curves: Mapping[str, RiskCoverage], score: str) -> str:
    """Draw one line a selector: the mean loss of the picks that are kept against their share."""
    title = f"Risk and coverage: {label(score)}"
    styles = looks(curves)
    with canvas():
        figure = new_figure(6.4, 3.7)
        axes = figure.subplots()
        for number, (method, curve) in enumerate(curves.items()):
            look = styles[method]
            (drawn,) = axes.plot(
                curve.coverage, curve.risk, color=look.colour, linestyle=look.dashes, marker=look.marker
            )
            drawn.set(gid=f"line-{number}", label=label(method_name(method)), markersize=5, linewidth=1.6)
        axes.set(
            xlabel="share of the picks that is kept", ylabel="mean loss (1 less the score)", xlim=(0, 1.02)
        )
        axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
        axes.tick_params(axis="y", labelcolor=FAINT, labelsize=8)
        axes.grid(visible=True, axis="y", color=RULE, linewidth=0.5, alpha=0.6)
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), handlelength=3)
        titled(
            figure,
            title,
            "the most plausible picks are kept first: a useful distance makes the line rise",
        )
        return svg(figure, title)
