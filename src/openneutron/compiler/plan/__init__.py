"""From kernel nodes to a schedule in memory: segments, stripes, order, allocation."""
