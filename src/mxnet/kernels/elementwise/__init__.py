"""Element-wise functions and histograms."""
