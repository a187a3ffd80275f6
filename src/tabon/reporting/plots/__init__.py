"""Pictures of an evaluation as SVG, PDF or PNG; drawing needs the extra `plots`, importing does not."""

from tabon.reporting.plots.drawing import FIGURE_FORMS
from tabon.reporting.plots.pictures import Picture, pictures

__all__ = ["FIGURE_FORMS", "Picture", "pictures"]
