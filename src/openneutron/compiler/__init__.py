"""The open Neutron compiler: LiteRT → L1 kernel graph → L2 task list → microcode."""
