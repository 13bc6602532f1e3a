"""Query logs that production wrote: which files, how they are read, the record of their counts.

    sources   which files are meant, what their servers are called, where the last reading ended
    zones     offsets of a time zone, for logs that write local time
    counts    what was counted, as tables of columns
    record    counts on disk, and another day added to them
    searches  the searches of a log, as load; ``anonymous``: with other words

The reading itself is the core's (``rust/logs``).
"""
