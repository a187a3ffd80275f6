"""Pictures of an evaluation as SVG text; drawing needs the extra `plots`, importing does not."""

from tabon.reporting.plots.curves import Curve, CurveLine, CurvePoint, curve_plot, curves_of, joined
from tabon.reporting.plots.gains import gains_plot, run_heat_map
from tabon.reporting.plots.map import transition_map_plot
from tabon.reporting.plots.pictures import Picture, pictures

__all__ = [
    "Curve",
    "CurveLine",
    "CurvePoint",
    "Picture",
    "curve_plot",
    "curves_of",
    "gains_plot",
    "joined",
    "pictures",
    "run_heat_map",
    "transition_map_plot",
]
