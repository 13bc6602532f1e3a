"""Files of requests: plain paths, a line each."""

from pathlib import Path

import numpy as np

from searchbench.requests.model import Ask, RequestSet


def read_requests(path: Path, form: str = "auto") -> RequestSet:
    lines = path.read_text().split("\n")
    lines = [x for x in lines if x]
    distinct = list(dict.fromkeys(lines))
    at = {t: i for i, t in enumerate(distinct)}
    return RequestSet(
        path.name, tuple(Ask(t) for t in distinct), np.array([at[x] for x in lines], np.uint32)
    )
