"""What measures and decides: which backend runs a graph, and the cache of these choices."""
