"""From a description to the cluster tree, which every algorithm runs on.

Lives here: the spanning tree and its coordinates, clusters, tree joints, loop constraints, cluster
joints; and in `closing` all that decides how loops are closed.
Comes in: `description`.
Used from outside: `tree.build_cluster_tree` and the `ClusterTree` it gives.
"""
