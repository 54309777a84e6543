"""Partitions become a .pte: the backend ExecuTorch calls, reports of partitions merged, intermediates."""
