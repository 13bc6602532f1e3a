//! SQLite called directly, without the wire: what the host's own cost is measured against.
//!
//!     direct_sqlite QUERIES.jsonl WARMUP_S SECONDS --data DIR [--cache_mb N] ...
//!
//! Puts queries for any of some terms in all text fields, by relevance with ties by the order of
//! ingest, and counts them. (`ORDER BY rank`, as FTS5's documentation has it, sorts every match and
//! takes half as long again.) Prints as JSON how many were answered after the warm-up, in how many
//! seconds and CPU seconds, and the sum of the totals of all queries.

use std::error::Error;
use std::fs;
use std::path::Path;
use std::time::Instant;

use rusqlite::Connection;
use searchbench_hosts::options::{Kind, Options, Spec};
use searchbench_hosts::query::{Matching, Mode, Query};
use searchbench_hosts::schema::Schema;
use searchbench_hosts::sqlite::{OPTIONS, Sqlite};
use serde_json::json;

const OWN: &[Spec] = &[Spec {
    name: "data",
    kind: Kind::Text,
    default: "",
}];

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [file, warmup_s, seconds, rest @ ..] = words.as_slice() else {
        return Err("direct_sqlite FILE WARMUP_S SECONDS --data DIR ...".into());
    };
    let options = Options::parse(&[OWN, OPTIONS], rest)?;
    let host = Sqlite::open(Path::new(options.text("data")), &options)?;
    let connection = host.connect()?;
    let schema: String =
        connection.query_row("SELECT schema FROM searchbench", [], |row| row.get(0))?;
    let schema: Schema = serde_json::from_str(&schema)?;
    let mut queries = Vec::new();
    for line in fs::read_to_string(file)?.lines() {
        let query: Query = serde_json::from_str(line)?;
        let checked = query.check(&schema).map_err(|f| format!("{f:?}"))?;
        let Matching::Terms {
            terms,
            mode: Mode::Any,
            ..
        } = checked.matching
        else {
            return Err("only queries for any of some terms".into());
        };
        let quoted: Vec<String> = terms.iter().map(|term| format!("\"{term}\"")).collect();
        queries.push((quoted.join(" OR "), i64::try_from(checked.limit)?));
    }
    rounds(&connection, &queries, warmup_s.parse()?)?;
    println!("{}", rounds(&connection, &queries, seconds.parse()?)?);
    Ok(())
}

/// Whole rounds of all queries until the time is up.
fn rounds(
    connection: &Connection,
    queries: &[(String, i64)],
    seconds: f64,
) -> rusqlite::Result<serde_json::Value> {
    let mut best = connection.prepare(
        "SELECT rowid, -bm25(fts) AS score FROM fts WHERE fts MATCH ? ORDER BY score DESC, rowid LIMIT ?",
    )?;
    let mut id = connection.prepare("SELECT id FROM docs WHERE seq = ?")?;
    let mut count = connection.prepare("SELECT count(*) FROM fts WHERE fts MATCH ?")?;
    let (start, used, mut answered) = (Instant::now(), cpu_s(), 0);
    loop {
        let mut totals = 0;
        for (expression, limit) in queries {
            let mut rows = best.query((expression, limit))?;
            while let Some(row) = rows.next()? {
                let name: String = id.query_row([row.get::<_, i64>(0)?], |row| row.get(0))?;
                std::hint::black_box((name, row.get::<_, f64>(1)?));
            }
            totals += count.query_row([expression], |row| row.get::<_, i64>(0))?;
            answered += 1;
        }
        let took = start.elapsed().as_secs_f64();
        if took >= seconds {
            let cpu_s = cpu_s() - used;
            return Ok(json!({"answered": answered, "s": took, "cpu_s": cpu_s, "totals": totals}));
        }
    }
}

/// CPU seconds of this process.
fn cpu_s() -> f64 {
    let mut time = libc::timespec {
        tv_sec: 0,
        tv_nsec: 0,
    };
    // SAFETY: the pointer is to a timespec that lives.
    unsafe { libc::clock_gettime(libc::CLOCK_PROCESS_CPUTIME_ID, &mut time) };
    time.tv_sec as f64 + time.tv_nsec as f64 / 1e9
}
