"""SenseiDB."""
