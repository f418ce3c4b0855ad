"""What is done inside a lab machine, whose drives' serials begin with LAB; elsewhere it refuses or is skipped."""
