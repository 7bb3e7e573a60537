"""One file per algorithm, each reading like its paper's pseudo-code."""
