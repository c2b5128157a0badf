"""What is exactly true about a mechanism."""

if __name__ != "dpassay.accountant":  # under a second name every class would exist twice
    raise ImportError("Import dpassay.accountant: the folder accountant/ is a part of dpassay.")
