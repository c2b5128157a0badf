"""Figures: tables computed below, drawn here.

`registry` lists the papers' figures and says how to add one; `production` makes them, `gallery`
shows them beside the verdicts, `cli` is `dpassay figures`; `profile` plots any privacy profile.
"""

if __name__ != "dpassay.figures":  # under a second name every class would exist twice
    raise ImportError("Import dpassay.figures: the folder figures/ is a part of dpassay.")
