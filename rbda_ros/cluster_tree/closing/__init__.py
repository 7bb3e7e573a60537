"""Closing loops: positions with ``phi(q) = 0`` (Chignoli 2024, Eq. 2).

- `tolerances`: every number that decides how loops are closed, with its reason
- `newton`: Newton steps, in kernels and outside
- `search`: from any start to a closed position, along a branch or by restarts
- `first_position`: the first closed position, at load
- `assembly`: closes a cluster at load, drops redundant rows, and chooses y
- `independent`: what y is, and which of the known joints determine the others
- `idle`: spins of rods that no constraint and no motor determines

`tree` assembles; `algorithms.closure` traces Newton steps over the whole robot; `robot.closer`
tries that kernel first and then the search; `robot.joint_choices` chooses joints by name.
"""
