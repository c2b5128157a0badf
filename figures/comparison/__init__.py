"""The command `dpassay compare`, and the plot and HTML page of a comparison."""
