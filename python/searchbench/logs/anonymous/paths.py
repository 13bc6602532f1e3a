r"""Paths of requests with other words: in the values of parameters, and what names somebody.

    parameters  that only say how to answer (``limit``, ``output_columns``) stay, if they have the
                form of that; those that say who asked, or of which host (``user``, ``session``),
                go; all others get other words
    the path    stays, but for numbers, addresses of mail, tokens, what follows a segment that says
                that it searches, and ``;jsessionid=..``; a host, a user and a password before it go

``class`` follows: it is the path with N for numbers, and the names of the parameters.
"""

from __future__ import annotations

import re
from urllib.parse import quote, unquote, unquote_plus

import orjson

from searchbench.logs.anonymous.bodies import in_body
from searchbench.logs.anonymous.words import NotAnonymised, Words, in_text, names

_SEARCHING = re.compile(r"(?i)search|find|query|suggest|select")
_HOST = re.compile(r"(?i)^(?:[a-z][a-z0-9+.-]*://[^/#]*|//[^/#]*[.@:][^/#]*)")
_ESCAPED = re.compile(r"(?i)%3b(?=[\w.-]*(?:sess|sid|token|user|auth)[\w.-]*(?:=|%3d))")
# Addresses of mail, numbers in any form, and what has several digits beside letters.
_TOKEN = re.compile(
    r"[^@/]+@[^@/]+|[+-]?\d[\d.,:()\s-]*|(?=.*\d)(?:[0-9a-fA-F-]{16,}|[\w-]{24,})|(?=(?:\D*\d){4}).+"
)
# Paths of servers, in which the names of indexes, commands and handlers stay.
_OF_INDEX = re.compile(
    r"/(?:[^/]+/){0,2}_(?:search|msearch|count|doc|mget|explain|validate|m?termvectors|field_caps"
    r"|search_shards|render|async_search|sql|plugins|knn_search|rank_eval|pit)(?:/[^/]*){0,2}"
    r"|/d/[\w.-]+|/solr(?:/[\w.-]+){1,3}/?"
)
_IN_INDEX = re.compile(r"[^@/]*@[^/]*|[+-]?\d[\d.,:()\s-]*|.*%.*")
_BELOW_SEARCH = names("template scroll point_in_time query")
_TWICE = re.compile(r"%[0-9a-fA-F]{2}")
_QUOTED = re.compile(
    r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'|(?<![\w.])\d+(?:\.\d+)?(?![\w])|(?<=:)[^\s()\[\]\"',}]+"
)
_LITERAL = re.compile(r"\"(?:[^\"\\]|\\.)*\"|'(?:[^'\\]|\\.)*'")
# A name behind an operator: a column, or a value that lacks its quotes.
_BARE = re.compile(
    r"(?:@[\^$~]?|[=!<>]=|[<>])\s*(?!(?:true|false|null)\b)[^\W\d]\w*(?![\w]|\s*[.(])"
)
_POINT = re.compile(r"([\"'])(-?\d+)([x,])(-?\d+)\1")
# In Groonga's scripts: options, ends of between(), columns of query().
_NAMED = re.compile(r"\bquery\(\s*\Z"), re.compile(r"\s*:"), {"include", "exclude"}
# Local parameters of Solr that say how; those of others, and what other parsers take, may be words.
_PAIR = (
    r"(?:f|df|qf|pf|type|tag|ex|key|cache|cost|score|from|to|fromIndex|which|of|q\.op|mm|sow|defType"
    r"|incl|incu)=(?:[A-Za-z_$][\w.,$]*|\d{1,3})"
)
_LOCAL = re.compile(
    rf"\{{!(?:(?:terms?|field|prefix|raw|lucene|e?dismax|complexphrase|simple)\b)?(?:\s*{_PAIR})*\s*\}}"
)


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
    "omitheader echoparams timeallowed stopwords sfield"
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
# Families of them (Solr's); all others of a family may have words.
_FAMILIES = {
    family: names(known)
    for family, known in {
        "facet": "field limit offset mincount sort missing method enum.cache.mindf threads exists "
        "overrequest.count overrequest.ratio pivot pivot.mincount range range.hardend range.other "
        "range.include range.method interval heatmap heatmap.gridlevel heatmap.format "
        "contains.ignorecase",
        "hl": "fl snippets fragsize method simple.pre simple.post tag.pre tag.post encoder "
        "requirefieldmatch usephrasehighlighter highlightmultiterm mergecontiguous "
        "maxanalyzedchars fragmenter alternatefield maxalternatefieldlength formatter "
        "preservemulti bs.type bs.language bs.country score.k1 score.b score.pivot defaultsummary",
        "group": "field limit offset format main ngroups sort truncate facet cache.percent",
        "stats": "field facet calcdistinct",
        "spellcheck": "count collate dictionary build reload onlymorepopular extendedresults "
        "maxcollations maxcollationtries accuracy alternativetermcount collateextendedresults "
        "maxresultsforsuggest",
        "mlt": "fl mintf mindf maxdf maxdfpct minwl maxwl maxqt maxntp boost qf count "
        "match.include match.offset interestingterms",
        "suggest": "dictionary count build reload buildall reloadall",
        "terms": "fl limit sort mincount maxcount raw lower.incl upper.incl regex.flag ttf",
        "expand": "rows sort field",
    }.items()
}
_OF_FIELD = re.compile(r"f\.[\w.-]+?\.((?:facet|hl)\.[\w.]+)")
# The form of what says how: fields, numbers, directions. On a server that is not known a number may
# be that of an order.
_PLAIN_HOW = re.compile(r"[\w.,:*+\-\s^<>%=|@/!~&;]*")
_PLAIN_NAME = re.compile(r"[A-Za-z_.,:+*\- ]{0,40}")
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
        if equals:
            if _says_how(known, before, value):
                put = _how_written(before, value, of)
            else:
                put = _value(known, unquote_plus(value, errors="surrogateescape"), of)
            if put is not None:
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
    of_server = any(of.match(path) for of, _ in _OF_SERVERS)
    if known in _HOW:
        return of_server or _PLAIN_NAME.fullmatch(unquote_plus(value)) is not None
    if any(known in own and of.match(path) for of, own in _OF_SERVERS):
        return True
    if _OF_SERVERS[1][0].match(path):
        of_field = _OF_FIELD.fullmatch(known)
        family, _, rest = (of_field[1] if of_field else known).partition(".")
        if rest in _FAMILIES.get(family, ()):
            return True
    return known in _COUNTS and re.fullmatch(r"-?\d*", value) is not None


def _how_written(path: str, value: str, of: Words) -> str | None:
    """What says how, if there are other words in it; None where it stays."""
    plain: str = unquote_plus(value, errors="surrogateescape")
    if _PLAIN_HOW.fullmatch(_LOCAL.sub("", plain)) and not _TWICE.search(plain):
        return None
    if _OF_SERVERS[0][0].match(path):  # Groonga's functions have names of columns, and literals
        return _LITERAL.sub(lambda found: in_text(found[0], of), plain)
    raise NotAnonymised("a parameter that says how to answer, with a function or a literal in it")


def _value(known: str, plain: str, of: Words) -> str:
    if known in ("pt", "point") and re.search(r"\d", plain):
        raise NotAnonymised("a place in a parameter")
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


def _unquoted(segment: str) -> str:
    """What a segment says, however often its signs were encoded."""
    plain = unquote(segment, errors="surrogateescape")
    while _TWICE.search(plain) and (again := unquote(plain, errors="surrogateescape")) != plain:
        plain = again
    return plain


def _segments(path: str, of: Words) -> list[str]:
    """The path itself: its numbers and tokens, and what follows a segment that searches."""
    found, searching = [], False
    of_index = _OF_INDEX.fullmatch(path) is not None  # names of indexes stay
    for whole in path.split("/"):
        segment, *parameters = whole.split(";")
        plain = _unquoted(segment)
        token = (_IN_INDEX if of_index else _TOKEN).fullmatch(plain) is not None
        if segment.isdigit():
            told = of(segment)
        elif segment and (searching or token) and not (of_index and segment in _BELOW_SEARCH):
            told = quote(in_text(plain, of), safe=".-_~@+,:()")
        else:
            told = segment
        searches = bool(_SEARCHING.search(segment))
        below = segment in _BELOW_SEARCH and segment != "template"
        searching = searches or below if of_index else searching or searches
        for parameter in parameters:
            name, equals, value = re.sub("(?i)%3d", "=", parameter, count=1).partition("=")
            if not equals:
                told += ";" + (_typed(name, of) if name else "")
            elif _known(name) not in _WHO:
                told += f";{name}={_typed(value, of)}"
        found.append(told)
    return found


def _signed(number: str, of: Words) -> str:
    digits = number.lstrip("-")
    return number[: len(number) - len(digits)] + of(digits)


def _script(text: str, of: Words) -> str:
    """What stands in quotes, numbers, and values behind a field's name (``title:red``)."""
    columns, option, ends = _NAMED

    def put(found: re.Match[str]) -> str:
        if option.match(text, found.end()) or found[0][1:-1] in ends:
            return found[0]
        if columns.search(text, max(0, found.start() - 20), found.start()):
            return found[0]
        if point := _POINT.fullmatch(found[0]):
            return f"{point[1]}{_signed(point[2], of)}{point[3]}{_signed(point[4], of)}{point[1]}"
        return in_text(found[0], of)

    if re.search(r"\bsub_filter\s*\(", text):
        raise NotAnonymised("a script inside of a script")
    if _BARE.search(_LITERAL.sub('""', text)):
        raise NotAnonymised("a script that compares with a name, or with a word without quotes")
    return _QUOTED.sub(put, text)
