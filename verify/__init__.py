"""Claims, verdicts, certificates and audits."""

if __name__ != "dpassay.verifier":  # under a second name every class would exist twice
    raise ImportError("Import dpassay.verifier: the folder verify/ is a part of dpassay.")
