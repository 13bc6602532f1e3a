"""The record on disk: the narrow waist, and the only file that knows its names.

    DIR/record.json        {"format": 1, "searchbench": version, "created": ISO time}
    DIR/study.toml         the study as run
    DIR/plan.json          treatments, trials in order, what was excluded
    DIR/host.json          the machine's fingerprint
    DIR/queries/DIGEST.jsonl    each distinct query: {"query": n, "text": .., "algebra": {..}}
    DIR/trials/ID/trial.json    treatment, versions, configuration, ingest, accounting, findings
    DIR/trials/ID/samples.parquet
    DIR/trials/ID/replies.parquet
    DIR/trials/ID/probe.parquet
"""
