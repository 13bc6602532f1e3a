"""Bodies of searches (Elasticsearch, OpenSearch) with other words, and the same structure.

Words are where the language of queries has them: in the values of leaves (``match``, ``term``,
``range``), in texts, in what answers are continued after. Everything that says how to answer stays,
and so do names of fields, in queries, aggregations, sorting and highlighting. What is not known
could be either, so a search that has it cannot be anonymised.

Longer than most files, because the language of queries has many places where a word can stand, and
one walk goes through all of them.
"""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Callable
from typing import Any

from searchbench.logs.anonymous.statements import number
from searchbench.logs.anonymous.words import NotAnonymised, Words, in_text, names, no_more

_Of = Callable[[Any, Words], Any]


# Leaves: below them a key is the name of a field, whatever it is called.
_LEAVES = names(
    "term terms match match_phrase match_phrase_prefix match_bool_prefix prefix wildcard fuzzy "
    "range regexp span_term terms_set text match_all_prefix common intervals neural neural_sparse "
    "text_expansion sparse_vector knn weighted_tokens"
)
# Those with options of their own.
_QUERIES = names(
    "bool boosting constant_score dis_max function_score nested has_child has_parent script_score "
    "hybrid span_near span_or span_not span_first span_containing span_within span_multi "
    "span_field_masking field_masking_span pinned rank_feature distance_feature more_like_this "
    "exists ids match_all match_none match_no_docs type script combined_fields multi_match "
    "query_string simple_query_string parent_id filtered not limit semantic"
)

_INNER = names(
    "query filter must should must_not queries positive negative clauses include exclude match "
    "little big organic rescore_query highlight_query no_match_query post_filter "
    "background_filter nested_filter all_of any_of before after containing contained_by "
    "not_containing not_contained_by not_overlapping overlapping intervals"
)
_VALUES = names(
    "query value values term gt gte lt lte from to like unlike ids id terms origin wildcard regexp "
    "prefix pattern text query_text model_text query_tokens query_vector vector doc docs documents "
    "stop_words stopwords _id routing _name like_text params search_after weight_tokens query_image"
)
_HOW = names(
    "boost field fields type types operator default_operator default_field analyzer "
    "quote_analyzer search_quote_analyzer fuzziness minimum_should_match zero_terms_query slop "
    "phrase_slop prefix_length fuzzy_prefix_length max_expansions fuzzy_max_expansions "
    "max_determinized_states rewrite fuzzy_rewrite flags flags_value format time_zone relation "
    "path score_mode boost_mode max_boost min_score negative_boost tie_breaker mode unit "
    "distance_type validation_method distance pivot scale decay offset k num_candidates "
    "similarity rescore_vector method_parameters model_id inference_id max_gaps ordered "
    "weight factor modifier missing_bucket _index _type index max_query_terms "
    "min_term_freq min_doc_freq max_doc_freq min_word_length max_word_length boost_terms end pre "
    "post dist in_order saturation log sigmoid linear exponent scaling_factor "
    "minimum_should_match_field parent_type child_type collect_payloads use_field "
    "quote_field_suffix locale timezone cutoff_frequency low_freq_operator high_freq_operator "
    "fuzzy_min_sim strategy execution _cache pruning_config pagination_depth"
)
_HOW_WITHIN = names("fields saturation log sigmoid linear rescore_vector method_parameters")
_FUNCTIONS = names("gauss exp linear")  # of function_score: below them names of fields

# Of the whole search.
_SEARCH_HOW = names(
    "from size timeout terminate_after track_total_hits track_scores min_score version "
    "seq_no_primary_term explain profile _source fields docvalue_fields stored_fields "
    "fielddata_fields indices_boost search_type slice rank search_pipeline verbose_pipeline "
    "include_named_queries_score phase_took"
)

# Aggregations: all of them say how, but for these keys.
_AGGREGATIONS = names("aggs aggregations")
_AGGREGATION_KINDS = names(
    "adjacency_matrix auto_date_histogram categorize_text children composite date_histogram "
    "date_range diversified_sampler filter filters frequent_item_sets geo_distance geohash_grid "
    "geohex_grid geotile_grid global histogram ip_prefix ip_range missing multi_terms nested "
    "parent random_sampler range rare_terms reverse_nested sampler significant_terms "
    "significant_text terms time_series variable_width_histogram avg boxplot cardinality "
    "extended_stats geo_bounds geo_centroid geo_line cartesian_bounds cartesian_centroid max "
    "median_absolute_deviation min percentile_ranks percentiles rate scripted_metric stats "
    "string_stats sum t_test top_hits top_metrics value_count weighted_avg matrix_stats "
    "avg_bucket bucket_correlation bucket_count_ks_test bucket_script bucket_selector bucket_sort "
    "change_point cumulative_cardinality cumulative_sum derivative extended_stats_bucket inference "
    "max_bucket min_bucket moving_fn moving_avg moving_percentiles normalize percentiles_bucket "
    "serial_diff stats_bucket sum_bucket"
)

_DATE = re.compile(r"\d{4}(?:-\d\d(?:-\d\d)?)?(?:T[\d:.,]+(?:Z|[+-]\d\d:?\d\d)?)?(?:\|\|.*)?")
_MATHS = re.compile(r"(?:now|\d{4}-\d\d-\d\d[^|\s]*\|\|)(?:[+-]\d+[yMwdhHms]|/[yMwdhHms])*")
_NAME = re.compile(r"(?!.*\d{3})[A-Za-z_][\w.-]*")
_TAG = re.compile(r"</?[a-z]+[\w\s=\"'-]*>|\W*")
_IN_SCRIPT = re.compile(r"(?<=\[)\s*(?:'[\w.@-]+'|\"[\w.@-]+\")\s*(?=\])")


def in_body(body: Any, of: Words) -> Any:
    """A body with other words. NotAnonymised where it has what is not known."""
    if not isinstance(body, dict):
        raise NotAnonymised("a body that is no object")
    try:
        return {key: _of_search(key, value, of) for key, value in body.items()}
    except (AttributeError, TypeError, RecursionError):
        raise NotAnonymised("a body of another form than those that are known") from None


def _of_search(key: str, value: Any, of: Words) -> Any:
    if key in ("query", "post_filter"):
        return _query(value, of)
    if key in _AGGREGATIONS:
        return _aggregations(value, of)
    if key == "search_pipeline" and isinstance(value, dict):
        raise _unknown("key", key)
    if key == "slice" and isinstance(value, dict) and isinstance(value.get("id"), str):
        raise _unknown("key", key)
    if key in _SEARCH_HOW or isinstance(value, bool) or value is None:
        return value
    if key in ("search_after", "stats"):
        return _value(value, of)
    found: _Of | None = {
        "sort": _sort, "collapse": _collapse, "highlight": _highlight, "rescore": _rescore,
        "suggest": _suggest, "script_fields": _scripts, "runtime_mappings": _runtime,
        "inner_hits": _inner_hits, "knn": _nearest,
    }.get(key)  # fmt: skip
    if found is None:
        raise _unknown("key", key)
    return found(value, of)


def _unknown(what: str, name: str) -> NotAnonymised:
    # A name of an application's own could be anything, and reasons are shown.
    told = f" ({name})" if re.fullmatch(r"[a-z_]{1,40}", name) and what == "query" else ""
    one = "an" if what[0] in "aeio" else "a"
    return NotAnonymised(f"{one} {what} of a kind that is not known{told}, which may have words")


def _query(value: Any, of: Words) -> Any:
    if isinstance(value, list):
        return [_query(one, of) for one in value]
    if not isinstance(value, dict):
        raise _unknown("query", "")
    return {kind: _of_kind(kind, inner, of) for kind, inner in value.items()}


def _of_kind(kind: str, inner: Any, of: Words) -> Any:
    if kind == "geo_distance":  # corners of boxes and shapes could not stand in any order
        return _place(inner, of)
    if kind == "knn" and isinstance(inner, dict) and "field" in inner:
        return _options(inner, of, kind)
    if kind in _LEAVES and isinstance(inner, dict):
        return {
            name: below
            if name == "boost" and isinstance(below, int | float)
            else _field(below, of, kind)
            for name, below in inner.items()
        }
    if kind in _QUERIES:
        return _options(inner, of, kind)
    if kind in ("and", "or"):
        return _query(inner, of)
    raise _unknown("query", kind)


def _field(below: Any, of: Words, kind: str) -> Any:
    """What is looked for in a field: a value, or an object that has it among options."""
    if isinstance(below, dict):
        return _options(below, of, kind)
    return _value(below, of, kind)


def _options(given: Any, of: Words, kind: str) -> Any:
    if isinstance(given, list):
        return [_options(one, of, kind) for one in given]
    if not isinstance(given, dict):
        return _value(given, of, kind)
    return {key: _option(key, value, of, kind) for key, value in given.items()}


def _option(key: str, value: Any, of: Words, kind: str) -> Any:
    if isinstance(value, bool) or value is None:
        return value
    nested = isinstance(value, dict) or (
        isinstance(value, list) and any(isinstance(one, dict) for one in value)
    )
    if kind == "intervals" and nested:
        return _options(value, of, kind)
    if key in _INNER and nested:
        return _query(value, of)
    if key in ("script", "script_score", "minimum_should_match_script"):
        return _script(value, of)
    if key == "inner_hits":
        return _inner_hits(value, of)
    if key == "functions":
        return [_options(one, of, kind) for one in value]
    if key in _FUNCTIONS and kind == "function_score":
        return {
            field: below if field == "multi_value_mode" else _near(below, of)
            for field, below in value.items()
        }
    if key == "random_score" and isinstance(value, dict):
        # The seed may be who asked.
        return {k: _value(v, of) if k == "seed" else v for k, v in value.items()}
    if key == "field_value_factor" and isinstance(value, dict):
        return value
    if key == "missing":
        return _missing(value, of)
    if key in _HOW and (not nested or key in _HOW_WITHIN):
        return value
    if key in _VALUES:
        return _all(value, of) if nested else _value(value, of, kind)
    raise _unknown("option", key)


def _near(given: Any, of: Words) -> Any:
    """Of a decay: ``origin`` is a date, a number or a place."""
    if not isinstance(given, dict):
        raise _unknown("option", "")
    return {k: _place(v, of) if k == "origin" else v for k, v in given.items()}


def _all(value: Any, of: Words) -> Any:
    """Values below any names; not the index that a document is of."""
    if isinstance(value, dict):
        return {
            name: inner if name in ("_index", "_type") else _all(inner, of)
            for name, inner in value.items()
        }
    return [_all(one, of) for one in value] if isinstance(value, list) else _value(value, of)


def _value(value: Any, of: Words, kind: str = "") -> Any:
    if isinstance(value, bool) or value is None:
        return value
    if isinstance(value, list):
        return [_value(one, of, kind) for one in value]
    if isinstance(value, dict):
        return _all(value, of)
    if not isinstance(value, str):
        return number(value, of)
    if kind in ("query_string", "simple_query_string"):
        return in_text(value, of, ":" if kind == "query_string" else "~")
    if kind == "regexp":
        return in_text(value, of, "regex")
    if _MATHS.fullmatch(value):
        return value
    if kind == "range":
        return _bound(value, of)
    if kind not in ("match", "match_phrase", "multi_match") and _is_address_of_6(value):
        raise NotAnonymised("an address of IPv6")
    return in_text(value, of)


def _bound(value: str, of: Words) -> str:
    if _DATE.fullmatch(value) and not value.isdigit():
        return value
    if re.search(r"\d\D+\d", value) and not re.fullmatch(r"[+-]?\d+\.\d+", value):
        if re.fullmatch(r"\d{1,3}(?:\.\d{1,3}){3}", value):
            return in_text(value, of)
        raise NotAnonymised("bounds of a range that look like dates, and not as 2026-01-31")
    return in_text(value, of)


def _is_address_of_6(text: str) -> bool:
    if text.count(":") < 2:
        return False
    try:
        ipaddress.ip_address(text.partition("/")[0])
    except ValueError:
        return False
    return True


# ── places ───────────────────────────────────────────────────────────────────────────────────


def _place(value: Any, of: Words, key: str = "") -> Any:
    """Points: where somebody is, or looks."""
    if isinstance(value, dict):
        return {
            name: inner if name in _HOW or name in ("ignore_unmapped", "order") else
            _place(inner, of, name)
            for name, inner in value.items()
        }  # fmt: skip
    if isinstance(value, list):
        numbers = [one for one in value if isinstance(one, int | float)]
        if len(numbers) == len(value) == 2:  # longitude, latitude
            return [_coordinate(value[0], 179, of), _coordinate(value[1], 89, of)]
        return [_place(one, of) for one in value]
    if isinstance(value, bool) or value is None or key == "_name":
        return in_text(value, of) if isinstance(value, str) else value
    if isinstance(value, int | float):
        longitude = key in ("lon", "left", "right", "x")
        return _coordinate(value, 179 if longitude else 89, of)
    if pair := re.fullmatch(r"(-?\d+(?:\.\d+)?)(\s*,\s*)(-?\d+(?:\.\d+)?)", value):
        return (
            f"{_coordinate(float(pair[1]), 89, of)}{pair[2]}{_coordinate(float(pair[3]), 179, of)}"
        )
    if _MATHS.fullmatch(value) or _DATE.fullmatch(value):
        return value
    raise NotAnonymised("a place that is neither a pair of numbers nor latitude and longitude")


def _coordinate(value: float, most: int, of: Words) -> float:
    digits, exponent, power = repr(value).partition("e")
    whole, point, rest = digits.lstrip("-").partition(".")
    sign = "-" if digits.startswith("-") else ""
    told = sign + no_more(whole, max(most, int(whole)), of) + point + (of(rest) if rest else "")
    told += exponent + power
    return int(told) if isinstance(value, int) else float(told)


# ── beside the query ─────────────────────────────────────────────────────────────────────────


def _aggregations(value: Any, of: Words) -> Any:
    if not isinstance(value, dict):
        raise _unknown("aggregation", "")
    return {name: _aggregation(one, of) for name, one in value.items()}


def _aggregation(given: Any, of: Words) -> Any:
    if not isinstance(given, dict):
        raise _unknown("aggregation", "")
    found = {}
    for kind, inner in given.items():
        if kind in _AGGREGATIONS:
            found[kind] = _aggregations(inner, of)
        elif kind == "meta":
            found[kind] = _all(inner, of)
        elif kind == "filter":
            found[kind] = _query(inner, of)
        elif kind in ("filters", "adjacency_matrix"):
            found[kind] = {k: _filters(v, of) if k == "filters" else v for k, v in inner.items()}
        elif kind == "top_hits":
            found[kind] = _inner_hits(inner, of)
        elif kind in _AGGREGATION_KINDS:
            found[kind] = {key: _of_aggregation(key, below, of) for key, below in inner.items()}
        else:
            raise _unknown("aggregation", kind)
    return found


def _filters(value: Any, of: Words) -> Any:
    if isinstance(value, list):
        return _query(value, of)
    return {name: _query(inner, of) for name, inner in value.items()}


def _of_aggregation(key: str, value: Any, of: Words) -> Any:
    if key in ("include", "exclude") and not isinstance(value, dict):
        return _value(value, of, "regexp" if isinstance(value, str) else "")
    if key == "after":
        return _all(value, of)
    if key == "origin":
        return _place(value, of)
    if key == "missing":
        return _missing(value, of)
    if key == "key":
        return _named(value, of)
    if key == "bounds":
        raise _unknown("option", key)
    if key in ("background_filter", "filter"):
        return _query(value, of)
    if key == "script" or key.endswith("_script"):
        return _script(value, of)
    if key == "params":
        return _all(value, of)
    if key == "sort":
        return _sort(value, of)
    if isinstance(value, dict):
        return {inner: _of_aggregation(inner, below, of) for inner, below in value.items()}
    if isinstance(value, list):
        return [
            {k: _of_aggregation(k, v, of) for k, v in one.items()} if isinstance(one, dict) else one
            for one in value
        ]
    return value


def _script(value: Any, of: Words) -> Any:
    """A script stays where it has no literals but names in brackets; its parameters are values."""
    if not isinstance(value, dict):
        return _source(value)
    found = {}
    for key, inner in value.items():
        if key in ("source", "inline"):
            found[key] = _source(inner)
        elif key == "params":
            found[key] = _all(inner, of)
        elif key in ("lang", "id", "stored", "options"):
            found[key] = inner
        elif key == "script":
            found[key] = _script(inner, of)
        else:
            raise _unknown("option", key)
    return found


def _source(text: Any) -> str:
    plain = _IN_SCRIPT.sub("", text) if isinstance(text, str) else '"'
    if re.search(r"['\"]|//|/\*|\d{3}|\d\.\d\d", plain):
        raise NotAnonymised("a script with values in it")
    return str(text)


def _scripts(value: Any, of: Words) -> Any:
    return {name: {k: _script(v, of) if k == "script" else v for k, v in one.items()}
            for name, one in value.items()}  # fmt: skip


def _runtime(value: Any, of: Words) -> Any:
    return _scripts(value, of)


def _sort(value: Any, of: Words) -> Any:
    if isinstance(value, list):
        return [_sort(one, of) for one in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for name, how in value.items():
        if name in ("_geo_distance", "_geoDistance"):
            found[name] = _place(how, of)
        elif name == "_script":
            found[name] = {k: _script(v, of) if k == "script" else v for k, v in how.items()}
        elif isinstance(how, dict):
            found[name] = {k: _nested(v, of) if k == "nested" else
                           _query(v, of) if k == "nested_filter" else
                           _missing(v, of) if k == "missing" else v
                           for k, v in how.items()}  # fmt: skip
        else:
            found[name] = how
    return found


def _missing(value: Any, of: Words) -> Any:
    how = isinstance(value, int | float) or value in ("_first", "_last")
    return value if how else _value(value, of)


def _nested(value: Any, of: Words) -> Any:
    return {k: _query(v, of) if k == "filter" else _nested(v, of) if k == "nested" else v
            for k, v in value.items()}  # fmt: skip


def _collapse(value: Any, of: Words) -> Any:
    return {k: _inner_hits(v, of) if k == "inner_hits" else
            _collapse(v, of) if k == "collapse" else v
            for k, v in value.items()}  # fmt: skip


def _inner_hits(value: Any, of: Words) -> Any:
    if isinstance(value, list):
        return [_inner_hits(one, of) for one in value]
    return {
        k: v if k == "ignore_unmapped" else _named(v, of) if k == "name" else _of_search(k, v, of)
        for k, v in value.items()
    }


def _named(name: Any, of: Words) -> Any:
    """A name of the application's own, or a value in its place."""
    return name if isinstance(name, str) and _NAME.fullmatch(name) else _value(name, of)


def _highlight(value: Any, of: Words) -> Any:
    if isinstance(value, list):
        return [_highlight(one, of) for one in value]
    if not isinstance(value, dict):
        return value
    found = {}
    for key, inner in value.items():
        if key == "highlight_query":
            found[key] = _query(inner, of)
        elif key == "fields":
            found[key] = (
                [_highlight(one, of) for one in inner] if isinstance(inner, list)
                else {name: _highlight(how, of) for name, how in inner.items()}
            )  # fmt: skip
        elif isinstance(inner, dict) and key != "options":
            found[key] = _highlight(inner, of)
        elif key in ("pre_tags", "post_tags"):
            tags = inner if isinstance(inner, list) else [inner]
            if not all(isinstance(tag, str) and _TAG.fullmatch(tag) for tag in tags):
                raise _unknown("tag", "")
            found[key] = inner
        else:
            found[key] = inner
    return found


def _rescore(value: Any, of: Words) -> Any:
    if isinstance(value, list):
        return [_rescore(one, of) for one in value]
    found = {}
    for key, inner in value.items():
        if key == "window_size":
            found[key] = inner
        elif key == "query":
            found[key] = {k: _query(v, of) if k == "rescore_query" else v for k, v in inner.items()}
        else:
            raise _unknown("option", key)
    return found


def _suggest(value: Any, of: Words) -> Any:
    found: dict[str, Any] = {}
    for name, one in value.items():
        if not isinstance(one, dict):
            found[name] = _value(one, of)
            continue
        found[name] = {}
        for key, inner in one.items():
            if key in ("text", "prefix"):
                found[name][key] = in_text(inner, of)
            elif key == "regex":
                found[name][key] = in_text(inner, of, "regex")
            elif key in ("term", "phrase", "completion"):
                if "contexts" in inner or "collate" in inner:
                    raise _unknown("option", "contexts")
                found[name][key] = inner
            else:
                raise _unknown("option", key)
    return found


def _nearest(value: Any, of: Words) -> Any:
    return _options(value, of, "knn")
