"""Small programs that use the node, one idea each; see docs/examples.md."""
