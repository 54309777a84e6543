"""Run LiteRT files: NeutronGraphs in the simulator, all other operators in LiteRT's reference kernels."""
