"""Pictures of an evaluation as SVG text; drawing needs the extra `plots`, importing does not."""

from tabon.reporting.plots.pictures import Picture, pictures

__all__ = ["Picture", "pictures"]
