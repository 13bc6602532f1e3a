"""What a person sees on a terminal: progress, tables, answers."""
