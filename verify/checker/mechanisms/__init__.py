"""What a mechanism's arguments say of its worst pairs and errors, derived a second time.

`arguments` says which arguments there are, `pairs` the worst pairs of laws, `utility` variances,
errors and quantiles. Each family has a file that derives it: `gaussian`, `spaces`, `ellipse`,
`counters`, `counts`, `matrices`.
"""
