"""Connectivity graph to spanning tree to clusters; tree joints, loops, cluster joints."""
