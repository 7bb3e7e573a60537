"""One file per algorithm, over CasADi matrices, reading like the paper's pseudo-code.

Lives here: recursions on the cluster tree, and what they share (`motion`, `contact_rows`).
Comes in: `cluster_tree`.
Used from outside: each file's function of its own name; `kernels.registry` lists what is traced.

Arguments with one meaning everywhere; a function lists the others, and where it takes these
otherwise. ``docs/notation.md`` has the symbols.

    tree: the cluster tree.
    joints: its cluster joints, as `motion.cluster_joints` gives them.
    q: (nq) spanning position, on the constraint manifold [rad, m].
    yd: (ny) independent velocity [rad/s, m/s].
    ydd: (ny) independent acceleration [rad/s^2, m/s^2].
    tau: (ny) generalized force on the independent coordinates [N m, N].
    wrenches: (6 x bodies) external force on each body in its frame, angular first [N m, N]; None
        for none.
"""
