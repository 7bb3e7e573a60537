"""One file per algorithm, over CasADi matrices, reading like the paper's pseudo-code.

Everywhere `tree` is the cluster tree, and `joints` are its cluster joints, as
`motion.cluster_joints` gives them; ``docs/notation.md`` has the other symbols.

Lives here: recursions on the cluster tree, and what they share (`motion`, `contact_rows`).
Comes in: `cluster_tree`.
Used from outside: each file's function of its own name; `kernels.registry` lists what is traced.
"""
