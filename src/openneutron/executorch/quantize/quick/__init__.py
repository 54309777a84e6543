"""What torch and torchao do while quantizing, in less time and to the same results."""
