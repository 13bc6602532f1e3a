//! What the fields of a log are: names that programs commonly use, and what the user says.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Time,
    Duration,
    Text,
    Request,
    Index,
    Class,
    Hits,
    Status,
    User,
    Server,
}

pub const ROLES: [(&str, Role); 10] = [
    ("time", Role::Time),
    ("duration", Role::Duration),
    ("text", Role::Text),
    ("request", Role::Request),
    ("index", Role::Index),
    ("class", Role::Class),
    ("hits", Role::Hits),
    ("status", Role::Status),
    ("user", Role::User),
    ("server", Role::Server),
];

/// Names that are known, with the unit of a duration in nanoseconds. Of a role the first wins.
const KNOWN: [(&str, Role, u64); 43] = [
    ("msec", Role::Time, 0),
    ("@timestamp", Role::Time, 0),
    ("timestamp", Role::Time, 0),
    ("time", Role::Time, 0),
    ("time_local", Role::Time, 0),
    ("ts", Role::Time, 0),
    ("t", Role::Time, 0),
    ("request_time", Role::Duration, 1_000_000_000),
    ("reqtime", Role::Duration, 1_000_000_000),
    ("duration_s", Role::Duration, 1_000_000_000),
    ("elapsed_s", Role::Duration, 1_000_000_000),
    ("took", Role::Duration, 1_000_000),
    ("took_ms", Role::Duration, 1_000_000),
    ("took_millis", Role::Duration, 1_000_000),
    ("duration_ms", Role::Duration, 1_000_000),
    ("elapsed_ms", Role::Duration, 1_000_000),
    ("latency_ms", Role::Duration, 1_000_000),
    ("QTime", Role::Duration, 1_000_000),
    ("duration_us", Role::Duration, 1_000),
    ("latency_us", Role::Duration, 1_000),
    ("duration_ns", Role::Duration, 1),
    ("q", Role::Text, 0),
    ("query", Role::Text, 0),
    ("keywords", Role::Text, 0),
    ("sql", Role::Text, 0),
    ("statement", Role::Text, 0),
    ("uri", Role::Request, 0),
    ("request", Role::Request, 0),
    ("request_uri", Role::Request, 0),
    ("url", Role::Request, 0),
    ("path", Role::Request, 0),
    ("index", Role::Index, 0),
    ("collection", Role::Index, 0),
    ("table", Role::Index, 0),
    ("hits", Role::Hits, 0),
    ("total_hits", Role::Hits, 0),
    ("found", Role::Hits, 0),
    ("results", Role::Hits, 0),
    ("status", Role::Status, 0),
    ("user", Role::User, 0),
    ("application", Role::User, 0),
    ("server", Role::Server, 0),
    ("hostname", Role::Server, 0),
];

/// A unit of time as nanoseconds.
pub fn unit(name: &str) -> Option<u64> {
    Some(match name {
        "s" => 1_000_000_000,
        "ms" => 1_000_000,
        "us" | "µs" => 1_000,
        "ns" => 1,
        _ => return None,
    })
}

/// What a name means: said by the user, or known. (role, unit in nanoseconds, rank: less is better)
#[derive(Clone, Copy, Debug)]
pub struct Meaning {
    pub role: Role,
    pub unit_ns: u64,
    /// What is to be said of the unit, where nobody named it.
    pub assumed: &'static str,
    pub rank: usize,
}

/// Names of durations that do not say their unit, and what is noted of it.
const ASSUMED: [(&str, &str); 3] = [
    (
        "took",
        "a duration named `took`, taken for milliseconds as Elasticsearch writes it",
    ),
    (
        "request_time",
        "a duration named `request_time`, taken for seconds as nginx writes it",
    ),
    (
        "reqtime",
        "a duration named `reqtime`, taken for seconds as nginx writes it",
    ),
];

/// The same of a column that the user named without a unit.
pub const SECONDS: &str = "a duration without a unit, taken for seconds";

/// A column that the user named: NAME, its role, the unit of a duration in nanoseconds or 0.
pub type Said = (Vec<u8>, Role, u64);

/// The meaning of a name, if it has one.
pub fn meaning(name: &[u8], said: &[Said]) -> Option<Meaning> {
    if let Some((_, role, unit_ns)) = said.iter().find(|(n, ..)| n == name) {
        return Some(Meaning {
            role: *role,
            unit_ns: *unit_ns,
            assumed: said_without(*role, *unit_ns),
            rank: 0,
        });
    }
    let rank = KNOWN.iter().position(|(n, ..)| n.as_bytes() == name)?;
    let (_, role, unit_ns) = KNOWN[rank];
    // What the user said of a role holds alone.
    if said.iter().any(|(_, r, _)| *r == role) {
        return None;
    }
    let assumed = ASSUMED.iter().find(|(n, _)| n.as_bytes() == name);
    Some(Meaning {
        role,
        unit_ns,
        assumed: assumed.map_or("", |(_, what)| what),
        rank: rank + 1,
    })
}

/// What is to be said of the unit of a column that the user named.
pub fn said_without(role: Role, unit_ns: u64) -> &'static str {
    if role == Role::Duration && unit_ns == 0 {
        SECONDS
    } else {
        ""
    }
}
