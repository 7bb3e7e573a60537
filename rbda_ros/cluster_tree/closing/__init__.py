"""Closing loops: positions with ``phi(q) = 0`` (Chignoli 2024, Eq. 2).

Lives here: all that decides how loops are closed. `tolerances` has every number with its reason;
`newton` the steps, in kernels and outside; `search` the way from any start, along a branch or by
restarts; `first_position` the first closed position at load; `assembly` that and which rows are
redundant; `independent` what y is, and which of the known joints determine the others.
Comes in: `loops` and the cluster joint.
Used from outside: `tree` assembles; `algorithms.closure` takes Newton steps over the whole robot;
`robot.closer` tries that kernel first and the search then; `robot.joint_choices` chooses by name.
"""
