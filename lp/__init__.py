"""Noise of least cost or least δ: linear and semidefinite programs with certified optima."""

if __name__ != "dpassay.lp":  # under a second name every class would exist twice
    raise ImportError("Import dpassay.lp: the folder lp/ is a part of dpassay.")
