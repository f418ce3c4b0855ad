"""What is known of each drive: its state, what was written to it, its write limit, and purging it."""
