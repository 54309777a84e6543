"""The names of others, served by our compiler: the `eiq_neutron_sdk` surface and the scripts of ExecuTorch's NXP backend."""
