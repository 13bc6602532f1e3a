"""From a question to its record: the lab measures, and the judge says what a search asks next.

    run    a study
    load   endpoints that run already: options made into a study, which is then run
    kept   what is on record already, and which trial of it is invalid

This is the one package that knows both lab and analysis: the lab drives and never judges, the
judge sees the record and never drives.
"""
