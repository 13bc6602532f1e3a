"""The lab: everything with side effects. Starts systems, puts documents in, drives, records."""
