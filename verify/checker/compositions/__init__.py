"""Products of laws: compositions, subsampled or not, by the first route that there is."""
