"""searchbench measures search systems so that people can decide by it."""
