"""Plans a kernel graph: chooses segments and stripe heights, schedules calls, and allocates memory."""
