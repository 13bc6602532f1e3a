"""What a system sustains as its load grows."""
