"""From a description to the cluster tree, which every algorithm runs on.

Lives here: the spanning tree and its coordinates, clusters, tree joints, loop constraints, cluster
joints; and in `closing` how loops are closed. A constraint *ties* the joints that it has rows for.
Imports `description`.
Used from outside: `tree.build_cluster_tree` and the `ClusterTree` that it returns.
"""
