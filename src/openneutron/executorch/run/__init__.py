"""A .pte in the stock ExecuTorch runtime, with our delegate."""
