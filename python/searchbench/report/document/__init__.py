"""What a page says, in order, before it is set in type."""
