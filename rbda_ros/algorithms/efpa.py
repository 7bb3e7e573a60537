"""The inverse operational-space inertia by cluster extended force propagators (C-EFPA).

Chignoli 2023, Sec. VI, after Wensing, Featherstone, Orin, "A Reduced-Order Recursive Algorithm for
the Computation of the Operational-Space Inertia Matrix" (2012), in O(n + m d + m^2) for n bodies,
depth d and m rows. An outward pass finds for each cluster the acceleration Omega_k that unit forces
on its bodies give these bodies (n). Unit forces of each end effector are carried inward through
joints that are free to move (m d), and each pair of end effectors meets once, at its closest common
cluster (m^2).

`pv_osim` does without Omega and the force propagators where nothing meets, and takes fewer
operations on every robot that was counted: it is the one that the kernels use, this one is the
route to compare it with.
"""

from __future__ import annotations

from collections.abc import Sequence

import casadi as ca

from rbda_ros.algorithms.aba import Articulated, articulated_inertias
from rbda_ros.algorithms.kinematics import BodyFrame
from rbda_ros.algorithms.motion import cluster_joints
from rbda_ros.algorithms.pv_osim import across, assembled, frame_source
from rbda_ros.cluster_tree.cluster_joint import ClusterJoint
from rbda_ros.cluster_tree.tree import ClusterTree
from rbda_ros.spatial import Matrix, mirrored


def efpa(
    tree: ClusterTree, q: Matrix, frames: Sequence[BodyFrame], linear_only: bool = False
) -> Matrix:
    """As `pv_osim.inverse_operational_space_inertia`; arguments and result are the same."""
    joints = cluster_joints(tree, q)
    articulated = articulated_inertias(tree, joints)
    omega = _inverse_inertias(tree, joints, articulated)

    # Forces of each end effector on every cluster that supports it.
    sources = [frame_source(tree, joints, at, linear_only) for at in frames]
    on_clusters: list[dict[int, Matrix]] = []
    for k, F in sources:
        on_clusters.append({})
        while k is not None:
            on_clusters[-1][k] = F
            F, _ = across(joints[k], articulated[k], F)  # the extended force propagator
            k = tree.clusters[k].parent

    return assembled(on_clusters, omega, [F.columns() for _, F in sources])


def _inverse_inertias(
    tree: ClusterTree, joints: list[ClusterJoint], articulated: list[Articulated]
) -> dict[int, Matrix]:
    """Omega_k (6n x 6n): acceleration of each cluster's bodies per force on them."""
    omega: dict[int, Matrix] = {}
    for k in tree.outward():
        P, own = across(joints[k], articulated[k], ca.DM.eye(tree.rows(k)))
        l = tree.clusters[k].parent
        omega[k] = mirrored(own if l is None else own + P.T @ omega[l] @ P)
    return omega
