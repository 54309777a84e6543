"""Running LiteRT files here: NeutronGraphs in the simulator, the rest in LiteRT's reference kernels."""
