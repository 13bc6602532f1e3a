//! Real logs of each format, most of them those that tests/logs has, and some that its manual has.

use searchbench_fuzz::{Random, Seeds};
use searchbench_logs::format::Format;

use crate::short::{SHORT, entries};

/// The format string of the lines below.
pub const PATTERN: &str = "{time} {_} \"{request}\" {status} {duration:ms}";

const LINES: &str = "2026-11-22T10:00:00.123 web1 \"GET /search?q=red+shoes HTTP/1.1\" 200 12.5\n\
    2026-11-22T10:00:01 web2 \"POST /a HTTP/1.1\" 503 0\n";

const SOLR: &str = "2026-11-22 10:00:00.123 INFO  (qtp1-22) [c:pages s:shard1 r:core_node3 x:p1] \
    o.a.s.c.S.Request webapp=/solr path=/select params={q=a+b&rows=10} hits=3 status=0 QTime=5\n\
    2026-11-22 10:00:00.120 INFO  (qtp1-23) [c:pages s:shard1 r:core_node3 x:p1] \
    o.a.s.c.S.Request webapp=/solr path=/select params={q=a%20b&isShard=true&distrib=false} \
    hits=3 status=0 QTime=2\n\
    2026-11-22 10:00:01.000 INFO  (main) [] o.a.s.c.CoreContainer started\n";

const CSV: &str = "when,took,what,status\n2026-11-22 10:00:00,12,\"red, \"\"new\"\" shoes\",200\n\
    2026-11-22T10:00:01Z,3.5,shoes,503\n\"2026-11-22 10:00:02\",7,\"two\nlines\",200\n";

const SEMICOLONS: &str = "time;duration_ms;query;hits\n2026-11-22 10:00:00;12;red shoes;7\n";

const JSON: &str = "{\"when\":\"2026-11-22T10:00:00Z\",\"took\":5,\"what\":\"red \\u00e9\\ud83d\\ude00\"}\n\
    {\"time\":1795345200.5,\"duration_ms\":1e3,\"query\":null,\"nested\":{\"a\":[1,{\"b\":2}]}}\n";

/// An older Elasticsearch in plain text; a head of syslog before an access log.
const ELASTICSEARCH: &str = "[2019-03-05T10:00:00,123][WARN ][index.search.slowlog.query] [node-1] \
    [pages][0] took[3.8ms], took_millis[3], total_hits[12], types[], stats[], \
    search_type[QUERY_THEN_FETCH], total_shards[3], source[{\"query\":{\"match_all\":{}}}],\n";

/// What the names of a format's files begin with, and texts besides them.
fn own(format: Format) -> (&'static [&'static str], &'static [&'static str]) {
    match format {
        Format::SphinxPlain => (&["sphinx-query-plain", "sphinx-query-iostats.log"], &[]),
        Format::SphinxQl => (
            &["sphinx-query-sphinxql", "sphinx-query-iostats-sphinxql"],
            &[],
        ),
        Format::Access => (
            &[
                "apache",
                "nginx-combined",
                "nginx-timed",
                "nginx-syslog",
                "haproxy",
            ],
            &[],
        ),
        Format::MysqlSlow => (&["mariadb-slow"], &[]),
        Format::MysqlGeneral => (&["mariadb-general"], &[]),
        Format::PostgresText => (&["postgresql-stderr"], &[]),
        Format::PostgresCsv => (&["postgresql-csvlog.csv"], &[]),
        Format::PostgresJson => (&["postgresql-csvlog.json", "postgresql-jsonlog"], &[]),
        Format::Groonga => (&["groonga"], &[]),
        Format::SlowPlain => (&["opensearch-slow.log"], &[ELASTICSEARCH]),
        Format::SlowJson => (&["elasticsearch-slow.json", "opensearch-slow.json"], &[]),
        Format::Solr => (&[], &[SOLR]),
        Format::Json => (&["nginx-json"], &[JSON]),
        Format::Ltsv => (&["nginx-ltsv"], &[]),
        Format::Csv => (&[], &[CSV, SEMICOLONS]),
        Format::Pattern => (&[], &[LINES]),
    }
}

const PIECES: [&[u8]; 24] = [
    b"\n",
    b"\r\n",
    b"\"",
    b"\"\"",
    b"'",
    b"[",
    b"]",
    b"{",
    b"}",
    b"|",
    b",",
    b"\\",
    b"\\u",
    b"%",
    b"# User@Host: ",
    b"/* ",
    b" */",
    b"; /*/\n",
    b"# error=",
    b"\t",
    b"9999999999999999999999",
    b"-1",
    b"\xff\x00",
    b": ",
];

pub struct Samples {
    own: Seeds,
    all: Seeds,
    /// An entry or two, of this format, and of any.
    short: Seeds,
    others: Seeds,
}

/// Short entries of a format, and short lines of its logs, one and two together.
fn short_of(format: Format, logs: &[Vec<u8>]) -> Vec<Vec<u8>> {
    let mut short: Vec<Vec<u8>> = Vec::new();
    for log in logs {
        let lines: Vec<&[u8]> = log.split_inclusive(|&byte| byte == b'\n').collect();
        let two = lines.windows(2).map(|two| two.concat());
        let each = lines.iter().map(|line| line.to_vec()).chain(two);
        short.extend(each.filter(|text| text.len() <= SHORT));
    }
    // What a reader looks for is in half of them at least.
    let of_logs = short.len();
    let own = entries(format);
    let times = 1 + of_logs / own.len();
    short.extend(
        own.iter()
            .cycle()
            .take(times * own.len())
            .map(|text| text.as_bytes().to_vec()),
    );
    short
}

/// One input in so many is a stretch of a log; the others are an entry or two, which are read in little
/// time, so many can be.
const LONG_ONE_IN: usize = 16;

impl Samples {
    pub fn of(format: Format) -> Samples {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../tests/logs");
        let mut paths: Vec<_> = std::fs::read_dir(folder)
            .expect("tests/logs is there")
            .map(|entry| entry.expect("it can be read").path())
            .filter(|path| path.file_name().is_some_and(|name| name != "truth.json"))
            .collect();
        paths.sort();
        let (names, texts) = own(format);
        let (mut own, mut all) = (Vec::new(), Vec::new());
        for path in paths {
            let text = std::fs::read(&path).expect("it can be read");
            let name = path.file_name().expect("it has one").to_string_lossy();
            if names.iter().any(|begin| name.starts_with(begin)) {
                own.push(text.clone());
            }
            all.push(text);
        }
        for text in texts {
            own.push(text.as_bytes().to_vec());
        }
        for text in [LINES, SOLR, CSV, JSON, ELASTICSEARCH] {
            all.push(text.as_bytes().to_vec());
        }
        let short = short_of(format, &own);
        let others = Format::ALL.iter().flat_map(|&other| entries(other));
        let seeds = |each: Vec<Vec<u8>>| {
            let seeds = Seeds::new(each).with_pieces(&PIECES);
            seeds.in_stretches_of(1500).with_changes(8)
        };
        let short_seeds = |each: Vec<Vec<u8>>| {
            let seeds = Seeds::new(each).with_pieces(&PIECES);
            seeds.in_stretches_of(2 * SHORT).with_changes(3)
        };
        Samples {
            own: seeds(own),
            all: seeds(all),
            short: short_seeds(short),
            others: short_seeds(others.map(|text| text.as_bytes().to_vec()).collect()),
        }
    }

    /// Most of its own format, some of any. True where it is a stretch of a log.
    pub fn spoiled(&self, random: &mut Random, out: &mut Vec<u8>) -> bool {
        let any = random.once_in(6);
        let long = random.once_in(LONG_ONE_IN);
        let seeds = match (long, any) {
            (true, true) => &self.all,
            (true, false) => &self.own,
            (false, true) => &self.others,
            (false, false) => &self.short,
        };
        seeds.spoiled(random, out);
        long
    }
}
