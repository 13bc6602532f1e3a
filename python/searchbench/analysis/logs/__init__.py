"""What a log of production says: counts → a judgement, without the log and without an engine."""
