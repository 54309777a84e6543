"""The machine: targets, prices of calls and copies, driver and simulator behind ctypes."""
