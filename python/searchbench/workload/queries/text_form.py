"""A query as one line for people and tables. Not meant to be read back; json_form is."""

from __future__ import annotations

from searchbench.workload.queries.algebra import Boolean, Filter, Match, Mode, Query, Range, Terms

_JOIN = {Mode.ANY: " OR ", Mode.ALL: " AND ", Mode.PREFIX: " AND ", Mode.FUZZY: " AND "}


def to_text(query: Query) -> str:
    """For example ``linux OR kernel | section in (net, web) | sort size desc | limit 20``."""
    parts = ["everything" if query.match is None else _match(query.match)]
    parts += [_filter(f) for f in query.filters]
    if query.sort:
        keys = (f"{s.field} desc" if s.descending else s.field for s in query.sort)
        parts.append("sort " + ", ".join(keys))
    if query.facets:
        parts.append("facets " + ", ".join(f"{f.field} ({f.limit})" for f in query.facets))
    if query.group_by is not None:
        parts.append(f"group by {query.group_by}")
    if query.offset:
        parts.append(f"offset {query.offset}")
    if query.limit != 10:
        parts.append(f"limit {query.limit}")
    if query.fields:
        parts.append("fields " + ", ".join(query.fields))
    if query.snippets:
        parts.append("snippets of " + ", ".join(query.snippets))
    return " | ".join(parts)


def _match(match: Match) -> str:
    if isinstance(match, Terms):
        return _terms(match)
    parts = []
    if match.must:
        parts.append(" AND ".join(_nested(m) for m in match.must))
    if match.should:
        joined = " OR ".join(_nested(m) for m in match.should)
        # Beside must, should only adds to the score.
        parts.append(f"MAYBE ({joined})" if match.must else joined)
    if match.must_not:
        parts.append(" ".join(f"NOT {_nested(m)}" for m in match.must_not))
    return " ".join(parts)


def _nested(match: Match) -> str:
    if isinstance(match, Boolean) or (len(match.terms) > 1 and match.mode is not Mode.PHRASE):
        return f"({_match(match)})"
    return _match(match)


def _terms(match: Terms) -> str:
    if match.mode is Mode.PHRASE:
        text = '"' + " ".join(match.terms) + '"'
    else:
        end = {Mode.PREFIX: "*", Mode.FUZZY: f"~{match.distance}"}.get(match.mode, "")
        text = _JOIN[match.mode].join(term + end for term in match.terms)
    return f"{','.join(match.fields)}:({text})" if match.fields else text


def _filter(part: Filter) -> str:
    if isinstance(part, Range):
        low = "" if part.low is None else f"{part.low} {'<=' if part.include_low else '<'} "
        high = "" if part.high is None else f" {'<=' if part.include_high else '<'} {part.high}"
        return f"{low}{part.field}{high}"
    word = type(part).__name__
    values = ", ".join(str(v) for v in part.values)
    return f"{part.field} {'in' if word == 'In' else 'not in'} ({values})"
