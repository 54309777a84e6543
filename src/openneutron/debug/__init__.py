"""Looking inside runs: every intermediate of a real schedule, compared with the reference layer by layer."""
