"""Compares what two versions of the project compute: ``python -m tools.trees OLD``.

`cases` makes calls, requests and recorded streams with this tree, `record` runs them in the
environment of either tree and writes down the results, and `compare` tells where they differ.
"""
