"""From a budget to a noise: calibration, targets, allotments."""
