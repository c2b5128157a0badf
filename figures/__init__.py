"""Figures: tables computed below, drawn here.

`registry` lists the papers' figures and says how to add one; `production` makes them, `gallery`
shows them beside the verdicts, `cli` is `dpassay figures`; `profile` plots any privacy profile.
"""
