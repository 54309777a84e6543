"""Compatibility: the `eiq_neutron_sdk` interface and the scripts of ExecuTorch's NXP backend, on our compiler."""
