"""Everything that relies on the internals of torch, torchao, ExecuTorch and ruamel."""
