"""Parts of the papers that this package does not have, with the reasons."""

from __future__ import annotations

ROWS = (
    (
        "Chignoli 2024, Figs. 8 and 10",
        "counts of Pinocchio's `constraintDynamics` itself",
        "the wheels of Pinocchio on PyPI come without its CasADi bindings; our trace of the same"
        " algorithm stands in",
    ),
    (
        "Chignoli 2024, Fig. 12",
        "the whole Tello humanoid",
        "its published URDF has no loops; one leg with the library's equations stands in",
    ),
    (
        "Chignoli 2024, Sec. VII",
        "which clusters with several output bodies have well-posed inertias",
        "not analysed; clusters may hang from several bodies of their parent, and those of our"
        " mechanisms are compared with dense solutions",
    ),
    (
        "Sathya 2024, Figs. 1, 2 and 5",
        "the parts of each bar: inertias, factorization, proximal iterations",
        "programs are shortened as a whole, and parts share what they compute",
    ),
    (
        "Sathya 2024, Sec. VIII-B",
        "a dense Cholesky decomposition in the place of LTL, eight times for twice the links",
        "not measured: our LTL is a straight line, whose length Fig. 3 has",
    ),
    (
        "Sathya 2024, Fig. 2",
        "times without Turbo Boost",
        "we cannot fix the frequency of our processors; Table II has the same systems",
    ),
    (
        "Sathya 2024, Sec. VIII",
        "Iiwa, Talos with 50 freedoms, Atlas with two Shadow hands",
        "example-robot-data does not have them; panda, its Talos and a generated tree stand in",
    ),
    (
        "Sathya 2024, Sec. VIII-A",
        "LTL vectorized by hand",
        "all algorithms are traced and compiled alike here",
    ),
    (
        "Sathya 2024, Table III",
        "LTL-chol, which ends at the Cholesky factor",
        "cABA-OSIM computes the inverse, so LTL-inv is the one to compare with",
    ),
    (
        "Sathya 2024, Sec. VII",
        "PV-soft and PV-early as algorithms of their own",
        "PV-soft is one iteration of constrainedABA; PV-early needs a singular value decomposition"
        " at every joint, and constrainedABA replaces it",
    ),
    (
        "Sathya 2024, Sec. VIII-B",
        "early elimination at the base in proxPV",
        "constrainedABA takes fewer operations on every robot but the arm",
    ),
    (
        "Chignoli 2023, Sec. VI",
        "C-EFPA as the algorithm behind `operational_space_inertia`",
        "PV-OSIMr takes fewer operations on every robot that was counted; C-EFPA is in"
        " `algorithms/efpa.py`",
    ),
    (
        "Jain 2009, Sec. I",
        "flexible links and joints",
        "URDF, SDF and MJCF describe rigid bodies",
    ),
)

TABLE = "\n".join(
    [
        "## Not in this package\n",
        "Parts of the papers that are not implemented, or not measured.\n",
        "| paper | part | reason |",
        "|---|---|---|",
        *(f"| {paper} | {part} | {reason} |" for paper, part, reason in ROWS),
        "",
    ]
)
