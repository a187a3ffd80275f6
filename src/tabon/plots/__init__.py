"""Pictures of an evaluation as SVG text; drawing needs the extra `plots`, importing does not."""

from tabon.plots.curves import Curve, CurveLine, CurvePoint, curve_plot, curves_of, joined
from tabon.plots.gains import gains_plot
from tabon.plots.heat_map import run_heat_map
from tabon.plots.map import transition_map_plot
from tabon.plots.pictures import Picture, pictures

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
