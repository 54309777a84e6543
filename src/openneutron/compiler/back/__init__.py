"""Behind the plan: the schedule verified, emitted as microcode, priced and reported."""
