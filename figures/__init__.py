"""The figures of the papers, plots of any answer, and HTML pages.

`registry` lists the papers' figures and explains how to add one. `production` makes them, `gallery`
shows them with the verdicts, and `cli` is the command `dpassay figures`. `plot` draws a mechanism
or an answer.
"""

if __name__ != "dpassay.figures":  # under a second name every class would exist twice
    raise ImportError("Import dpassay.figures: the folder figures/ is a part of dpassay.")
