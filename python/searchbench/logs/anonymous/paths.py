r"""Paths of requests with other words: in the values of parameters, and what names somebody.

    parameters  that only say how to answer (``limit``, ``output_columns``) stay; those that say who
                asked, or of which host (``user``, ``session``), go; all others get other words
    the path    stays, but for numbers, addresses of mail, tokens, what follows a segment that says
                that it searches, and ``;jsessionid=..``; a host, a user and a password before it go

``class`` follows: it is the path with N for numbers, and the names of the parameters.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote_plus

import orjson

from searchbench.logs.anonymous.bodies import in_body
from searchbench.logs.anonymous.words import NotAnonymised, Words, in_text, names

_SEARCHING = re.compile(r"(?i)search|find|query|suggest|select")
_HOST = re.compile(r"(?i)^(?:[a-z][a-z0-9+.-]*://[^/#]*|//[^/#]*[.@:][^/#]*)")
_ESCAPED = re.compile(r"(?i)%3b(?=[\w.-]*(?:sess|sid|token|user|auth)[\w.-]*(?:=|%3d))")
_TOKEN = re.compile(r"[^@/]+@[^@/]+\.\w+|(?=.*\d)(?:[0-9a-fA-F-]{16,}|[\w-]{24,})|\d+(?:\.\d+){3}")
_QUOTED = re.compile(
    r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|(?<![\w.])\d+(?![\w])|(?<=:)[^\s()\[\]\"',}]+"
)
# In Groonga's scripts: options, ends of between(), columns of query().
_NAMED = re.compile(r"\bquery\(\s*\Z"), re.compile(r"\s*:"), {"include", "exclude"}
_LOCAL = re.compile(r"\{!\w+(?:\s+(?!v\s*=)\w[\w.]*=[\w.$]+)*\s*\}")


# Parameters that say how to answer, and not what is looked for.
_HOW = names(
    "table match_columns output_columns output_type sortby sort_keys sort order orderby drilldown "
    "drilldown_sortby drilldown_sort_keys drilldown_output_columns cache command_version wt fl df "
    "deftype qf pf mm op q.op facet facet.field facet.limit hl hl.fl lang locale format indent "
    "columns fields typed_keys request_cache index collection"
)
# Of which only numbers do: /trains?from=Paris
_COUNTS = names(
    "limit offset page pagesize page_size per_page size rows start from drilldown_offset "
    "drilldown_limit"
)
# Those of one server, by what shows that a path is of it.
_GROONGA = names(
    "drilldown_calc_types drilldown_calc_target query_flags query_expander query_options "
    "match_escalation match_escalation_threshold column types logical_table shard_key min_border "
    "max_border frequency_threshold prefix_search conditional_probability_threshold "
    "similar_search load_table load_columns load_values dynamic_columns n_workers"
)
_IN_BRACKETS_HOW = names("keys calc_types calc_target stage flags type") | _HOW | _COUNTS
_SOLR = names(
    "pf2 pf3 ps qs tie uf bf boost sow group stats spellcheck suggest mlt expand terms qt "
    "omitheader echoparams timeallowed stopwords"
)
_ELASTICSEARCH = names(
    "_source _source_includes _source_excludes stored_fields docvalue_fields search_type scroll "
    "timeout terminate_after track_total_hits track_scores version analyzer analyze_wildcard "
    "default_operator allow_no_indices expand_wildcards ignore_unavailable ignore_throttled "
    "batched_reduce_size lenient pre_filter_shard_size max_concurrent_shard_requests "
    "rest_total_hits_as_int filter_path suggest_field suggest_mode suggest_size "
    "ccs_minimize_roundtrips source_content_type"
)
_OF_SERVERS = (
    (re.compile(r"/d/"), _GROONGA),
    (re.compile(r"/solr/|.*/select$"), _SOLR),
    (re.compile(r".*/_"), _ELASTICSEARCH),
)
# Families of them (Solr's), but for those that have words.
_FAMILIES = ("facet.", "hl.", "group.", "stats.", "spellcheck.", "mlt.", "suggest.", "terms.",
             "expand.", "f.")  # fmt: skip
_WITH_WORDS = ("q", "query", "prefix", "contains", "regex", "lower", "upper", "cfq")
_IN_BRACKETS = re.compile(r"(?:drilldowns?|columns|slices)\[[^]]*\].*?([\w]+)$")

# Those that have no value where they are asked for; any other without one may be what was typed.
_FLAGS = names("pretty human explain error_trace flat_settings v help debug debugquery")

# Those in which names of fields stand beside values.
_SCRIPTS = names("filter scorer drilldown_filter post_filter slice_filter adjuster value "
                  "drilldown_adjuster")  # fmt: skip

# Those that say who asked, or from where, or which host answers.
_WHO = names(
    "user user_id userid uid username usr login email mail session session_id sessionid sid sess "
    "sessid jsessionid phpsessid token access_token auth_token csrf csrftoken jwt auth apikey "
    "api_key api_token key password passwd pass pwd ip client client_id client_ip customer "
    "customer_id account account_id device device_id deviceid visitor visitor_id cookie host "
    "hostname shards preference referer referrer callback jsonp _ ts timestamp signature sig "
    "tracking_id gclid fbclid msclkid"
)
_NOT_TAKEN_APART = names("json json.facet json.filter json.query cursormark scroll_id template")


def in_path(path: str, of: Words) -> str:
    """A path with other words. NotAnonymised where its values cannot be told apart."""
    before, mark, query = _without_host(path).partition("?")
    kept = ""
    # Parameters and what stands between them, in turn.
    for pair, behind in zip(*[iter([*re.split("([&;])", query), ""])] * 2, strict=True):
        name, equals, value = pair.partition("=")
        known = _known(name)
        if known.replace("-", "_") in _WHO:
            continue
        if equals and not _says_how(known, before, value):
            plain = unquote_plus(value, errors="surrogateescape")
            put = _value(known, plain, of)
            value = quote(put, safe="!'()*,:@/$-._~", errors="surrogateescape")
        elif known and not equals and not _says_how(known, before) and known not in _FLAGS:
            name = _typed(name, of)
        kept += name + equals + value + behind
    kept = kept.rstrip("&;") if not query.endswith(("&", ";")) else kept
    return "/".join(_segments(before, of)) + (mark if kept else "") + kept


def in_class(of_class: str, path: str, of: Words) -> str:
    """The class of a request for ``path``, as that of the path with other words."""
    method, rest = "", of_class
    if verb := re.match(r"[A-Z]+ ", of_class):
        method, rest = verb[0], of_class[verb.end() :]
    asked, mark, names = _without_host(rest).partition("?")
    if not asked.startswith("/"):
        return of_class  # named by who called, or that of a body
    bare = _bare(path)
    each = re.split("([&;])", names)
    told = "".join(_typed(n, of) if unquote_plus(n).lower() in bare else n for n in each)
    # Numbers in it are N already, so what a segment becomes is seen in the path.
    before = _without_host(path).partition("?")[0]
    plain, other = before.split("/"), _segments(before, of)
    segments = asked.split("/")
    for n in range(1, 1 + min(len(segments), len(plain))):
        if plain[-n] != other[-n]:
            segments[-n] = re.sub(r"\d+", "N", other[-n])
    return method + "/".join(segments) + mark + told


def _without_host(path: str) -> str:
    """A proxy's whole URL names a host, and perhaps a user and a password."""
    before, mark, query = path.partition("?")
    if _HOST.match(before):
        before = _HOST.sub("", before) or "/"
    before = _ESCAPED.sub(";", before.partition("#")[0])
    return before + mark + query


def _known(name: str) -> str:
    return unquote_plus(name).lower().removesuffix("[]")


def _says_how(known: str, path: str, value: str = "") -> bool:
    if found := _IN_BRACKETS.fullmatch(known):
        return found[1] in _IN_BRACKETS_HOW
    if known in _HOW or any(known in own and of.match(path) for of, own in _OF_SERVERS):
        return True
    if known.startswith(_FAMILIES) and _OF_SERVERS[1][0].match(path):
        return known.rpartition(".")[2] not in _WITH_WORDS
    return known in _COUNTS and re.fullmatch(r"-?\d*", value) is not None


def _value(known: str, plain: str, of: Words) -> str:
    if known in _NOT_TAKEN_APART and plain != "*":
        raise NotAnonymised("a parameter that has both names and words, which are not told apart")
    if found := _IN_BRACKETS.fullmatch(known):
        known = found[1]
    if known == "source" and plain.lstrip().startswith("{"):
        try:
            return orjson.dumps(in_body(orjson.loads(plain), of)).decode()
        except orjson.JSONDecodeError:
            raise NotAnonymised("a body that is not whole") from None
    if known in _SCRIPTS:
        return _script(plain, of)
    told, at = "", 0
    for local in re.finditer(r"\{!", plain):
        whole = _LOCAL.match(plain, local.start())
        if whole is None:
            raise NotAnonymised("local parameters of Solr with values")
        told += in_text(plain[at : local.start()], of, ":") + whole[0]
        at = whole.end()
    return told + in_text(plain[at:], of, ":")


def _bare(path: str) -> set[str]:
    """Parameters without a value (``/search?red``), lowered: somebody may have typed them."""
    before, _, query = _without_host(path).partition("?")
    pairs = re.split("[&;]", query)
    names = {unquote_plus(pair).lower() for pair in pairs if pair and "=" not in pair}
    return {name for name in names if not _says_how(name, before) and name not in _FLAGS}


def _typed(name: str, of: Words) -> str:
    plain = unquote_plus(name, errors="surrogateescape")
    return quote(in_text(plain, of), safe=".-_~", errors="surrogateescape")


def _segments(path: str, of: Words) -> list[str]:
    """The path itself: its numbers and tokens, and what follows a segment that searches."""
    found, searching = [], False
    of_index = re.search(r"/_|^/(?:solr|d)/", path) is not None  # names of indexes stay
    for whole in path.split("/"):
        segment, *parameters = whole.split(";")
        token = not of_index and _TOKEN.fullmatch(unquote_plus(segment)) is not None
        if segment.isdigit():
            told = of(segment)
        elif segment and (searching or token):
            told = quote(in_text(unquote_plus(segment), of), safe=".-_~@")
        else:
            told = segment
        searching = bool(_SEARCHING.search(segment))
        for parameter in parameters:
            name, equals, value = re.sub("(?i)%3d", "=", parameter, count=1).partition("=")
            if not equals:
                told += ";" + (_typed(name, of) if name else "")
            elif _known(name) not in _WHO:
                told += f";{name}={_typed(value, of)}"
        found.append(told)
    return found


def _script(text: str, of: Words) -> str:
    """What stands in quotes, numbers, and values behind a field's name (``title:red``)."""
    columns, option, ends = _NAMED

    def put(found: re.Match[str]) -> str:
        if option.match(text, found.end()) or found[0][1:-1] in ends:
            return found[0]
        if columns.search(text, max(0, found.start() - 20), found.start()):
            return found[0]
        return in_text(found[0], of)

    if re.search(r"\bsub_filter\s*\(", text):
        raise NotAnonymised("a script inside of a script")
    return _QUOTED.sub(put, text)
