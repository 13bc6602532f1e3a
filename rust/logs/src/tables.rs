//! What was counted as tables of columns, and back: the record of a log.
//!
//! ```text
//! groups      a row a group: kind, name, the numbers of `Group::NUMBERS`
//! times       a row a bucket that is not empty: kind, name, bucket, n
//! minutes     a row a minute: minute, n, sum_ns, max_ns, zero, errors, coarse, slowest
//! queries     a row a distinct query: hash, text, n, sum_ns, max_ns, zero, errors, first
//! hits        n by bucket of the number of hits
//! resolutions server, resolution_ns, n; by a record of before: without server
//! dropped     below, dropped, registers: one row
//! ```
//!
//! Rows are in an order of their own content, so equal counts give equal tables.

use crate::histogram::BUCKETS;
use crate::minutes::{COARSE, Minute};
use crate::queries::{Counts, Shared};
use crate::run::Log;
use crate::tally::{ANY, Group, KINDS, SERVER, Tally, WORDS_KIND, words_name};

/// A column. Bytes: the values one after another, and where each ends.
#[derive(Clone, Debug, PartialEq)]
pub enum Column {
    U64(Vec<u64>),
    Bytes(Vec<u8>, Vec<u64>),
}

pub type Table = Vec<(&'static str, Column)>;

fn bytes() -> Column {
    Column::Bytes(Vec::new(), Vec::new())
}

fn push(column: &mut Column, value: &[u8]) {
    if let Column::Bytes(all, ends) = column {
        all.extend_from_slice(value);
        ends.push(all.len() as u64);
    }
}

fn push_number(column: &mut Column, value: u64) {
    if let Column::U64(all) = column {
        all.push(value);
    }
}

/// All groups: kind, name, group, by kind and name.
fn all_groups(tally: &Tally) -> Vec<(&'static str, Vec<u8>, &Group)> {
    let mut found = Vec::new();
    for (kind, groups) in KINDS.iter().zip(&tally.kinds) {
        let from = found.len();
        for (name, group) in groups.iter().filter(|(_, group)| group.n > 0) {
            found.push((*kind, name.to_vec(), group));
        }
        found[from..].sort_by(|a, b| a.1.cmp(&b.1));
    }
    for (number, group) in tally.words.iter().enumerate().filter(|(_, g)| g.n > 0) {
        found.push((KINDS[WORDS_KIND], words_name(number).into_bytes(), group));
    }
    found
}

/// The tables of a log, by name.
pub fn of(mut log: Log) -> Vec<(&'static str, Table)> {
    log.tally.settle();
    let tally = &log.tally;
    let mut groups: Table = vec![("kind", bytes()), ("name", bytes())];
    groups.extend(Group::NUMBERS.map(|name| (name, Column::U64(Vec::new()))));
    let mut times: Table = vec![
        ("kind", bytes()),
        ("name", bytes()),
        ("bucket", Column::U64(Vec::new())),
        ("n", Column::U64(Vec::new())),
    ];
    for (kind, name, group) in all_groups(tally) {
        push(&mut groups[0].1, kind.as_bytes());
        push(&mut groups[1].1, &name);
        for (column, value) in groups[2..].iter_mut().zip(group.numbers()) {
            push_number(&mut column.1, value);
        }
        for (bucket, n) in group.times.filled() {
            push(&mut times[0].1, kind.as_bytes());
            push(&mut times[1].1, &name);
            push_number(&mut times[2].1, bucket as u64);
            push_number(&mut times[3].1, n);
        }
    }
    let (below, dropped, registers) = log.queries.dropped();
    let mut of_dropped: Table = vec![
        ("below", Column::U64(vec![below])),
        ("dropped", Column::U64(vec![dropped])),
        ("registers", bytes()),
    ];
    push(&mut of_dropped[2].1, &registers.0);
    vec![
        ("groups", groups),
        ("times", times),
        ("minutes", minutes(tally)),
        ("queries", queries(log.queries)),
        ("hits", vec![("n", Column::U64(tally.hits.clone()))]),
        ("resolutions", resolutions(tally)),
        ("dropped", of_dropped),
    ]
}

/// By server; one that is not known has no name.
fn resolutions(tally: &Tally) -> Table {
    let named = |server| match server {
        ANY => &b""[..],
        known => tally.kinds[SERVER].names.get(known),
    };
    let mut rows: Vec<(&[u8], u32, u64)> = tally
        .resolutions
        .iter()
        .map(|(&(server, resolution), &n)| (named(server), resolution, n))
        .collect();
    rows.sort_unstable();
    let mut table: Table = vec![
        ("server", bytes()),
        ("resolution_ns", Column::U64(Vec::new())),
        ("n", Column::U64(Vec::new())),
    ];
    for (server, resolution, n) in rows {
        push(&mut table[0].1, server);
        push_number(&mut table[1].1, u64::from(resolution));
        push_number(&mut table[2].1, n);
    }
    table
}

fn minutes(tally: &Tally) -> Table {
    let names = ["minute", "n", "sum_ns", "max_ns", "zero", "errors"];
    let mut table: Table = names.map(|name| (name, Column::U64(Vec::new()))).into();
    table.push(("coarse", bytes()));
    table.push(("slowest", bytes()));
    let mut order: Vec<i64> = tally.minutes.keys().copied().collect();
    order.sort_unstable();
    for minute in order {
        let cell = &tally.minutes[&minute];
        let numbers = [
            minute as u64,
            cell.n,
            cell.sum_ns,
            cell.max_ns,
            cell.zero,
            cell.errors,
        ];
        for (column, value) in table.iter_mut().zip(numbers) {
            push_number(&mut column.1, value);
        }
        let coarse: Vec<u8> = cell.coarse.iter().flat_map(|n| n.to_le_bytes()).collect();
        push(&mut table[6].1, &coarse);
        push(&mut table[7].1, &cell.slowest);
    }
    table
}

fn queries(shared: Shared) -> Table {
    let kept = shared.kept();
    let numbers = || Column::U64(Vec::with_capacity(kept));
    let mut table: Table = vec![
        ("hash", numbers()),
        (
            "text",
            Column::Bytes(
                Vec::with_capacity(shared.text_bytes()),
                Vec::with_capacity(kept),
            ),
        ),
        ("n", numbers()),
        ("sum_ns", numbers()),
        ("max_ns", numbers()),
        ("zero", numbers()),
        ("errors", numbers()),
        ("first", numbers()),
    ];
    shared.into_each(|query| {
        let c = query.counts;
        push_number(&mut table[0].1, query.hash);
        push(&mut table[1].1, query.text);
        let values = [
            c.n,
            c.sum_ns,
            c.max_ns,
            u64::from(c.zero),
            u64::from(c.errors),
            u64::from(c.first),
        ];
        for (column, value) in table[2..].iter_mut().zip(values) {
            push_number(&mut column.1, value);
        }
    });
    table
}

/// A table as it is read back: columns by name, all as long.
struct Rows<'a> {
    name: &'a str,
    columns: &'a [(String, Column)],
}

impl Rows<'_> {
    fn numbers(&self, name: &str) -> Result<&[u64], String> {
        match self.columns.iter().find(|(n, _)| n == name) {
            Some((_, Column::U64(values))) => Ok(values),
            _ => Err(format!(
                "the table {} has no column {name} of numbers",
                self.name
            )),
        }
    }

    fn texts(&self, name: &str) -> Result<Vec<&[u8]>, String> {
        let Some((_, Column::Bytes(all, ends))) = self.columns.iter().find(|(n, _)| n == name)
        else {
            return Err(format!(
                "the table {} has no column {name} of bytes",
                self.name
            ));
        };
        let mut from = 0;
        let mut found = Vec::with_capacity(ends.len());
        for &end in ends {
            let value = all.get(from..end as usize);
            found.push(value.ok_or_else(|| format!("{}.{name}: its ends are wrong", self.name))?);
            from = end as usize;
        }
        Ok(found)
    }

    /// Err where columns differ in length.
    fn even(&self) -> Result<(), String> {
        let len = |column: &Column| match column {
            Column::U64(values) => values.len(),
            Column::Bytes(_, ends) => ends.len(),
        };
        let mut all = self.columns.iter().map(|(_, column)| len(column));
        let first = all.next();
        if all.all(|n| Some(n) == first) {
            return Ok(());
        }
        Err(format!(
            "the columns of the table {} are not equally long",
            self.name
        ))
    }
}

/// Adds tables to a log, as if what they count were read again. Err names what is wrong in them.
pub fn add(log: &mut Log, tables: &[(String, Vec<(String, Column)>)]) -> Result<(), String> {
    log.tally.settle();
    for (name, columns) in tables {
        let rows = Rows { name, columns };
        rows.even()?;
        match name.as_str() {
            "groups" => add_groups(&mut log.tally, &rows)?,
            "times" => {
                let (kinds, names) = (rows.texts("kind")?, rows.texts("name")?);
                let (buckets, n) = (rows.numbers("bucket")?, rows.numbers("n")?);
                for i in 0..kinds.len() {
                    let group = group(&mut log.tally, kinds[i], names[i])?;
                    let bucket = usize::try_from(buckets[i]).unwrap_or(usize::MAX);
                    if bucket >= BUCKETS {
                        return Err(format!("times: there is no bucket {bucket}"));
                    }
                    group.times.add_bucket(bucket, n[i]);
                }
            }
            "minutes" => add_minutes(&mut log.tally, &rows)?,
            "queries" => add_queries(&log.queries, &rows)?,
            "hits" => {
                let n = rows.numbers("n")?;
                log.tally.hits.resize(log.tally.hits.len().max(n.len()), 0);
                log.tally
                    .hits
                    .iter_mut()
                    .zip(n)
                    .for_each(|(own, n)| *own += n);
            }
            "resolutions" => {
                let (resolution, n) = (rows.numbers("resolution_ns")?, rows.numbers("n")?);
                let named = columns.iter().any(|(column, _)| column == "server");
                let servers = if named {
                    rows.texts("server")?
                } else {
                    vec![&b""[..]; n.len()]
                };
                for ((server, &resolution), n) in servers.into_iter().zip(resolution).zip(n) {
                    let server = match server {
                        b"" => ANY,
                        known => log.tally.kinds[SERVER].names.number(known),
                    };
                    let of_server = (server, resolution as u32);
                    *log.tally.resolutions.entry(of_server).or_default() += n;
                }
            }
            "dropped" => {
                let (below, dropped) = (rows.numbers("below")?, rows.numbers("dropped")?);
                for (i, registers) in rows.texts("registers")?.iter().enumerate() {
                    log.queries.add_dropped(below[i], dropped[i], registers);
                }
            }
            other => return Err(format!("there is no table {other}")),
        }
    }
    Ok(())
}

fn group<'a>(tally: &'a mut Tally, kind: &[u8], name: &[u8]) -> Result<&'a mut Group, String> {
    let at = KINDS.iter().position(|k| k.as_bytes() == kind);
    let at = at.ok_or_else(|| format!("there is no kind {}", String::from_utf8_lossy(kind)))?;
    if at != WORDS_KIND {
        return Ok(tally.kinds[at].of(name));
    }
    let text = String::from_utf8_lossy(name);
    let number = text
        .strip_prefix('>')
        .map_or(text.parse(), |_| Ok(crate::tally::MOST_WORDS + 1));
    let number = number.map_err(|_| format!("{text} is no number of words"))?;
    Ok(tally.of_words(number))
}

fn add_groups(tally: &mut Tally, rows: &Rows<'_>) -> Result<(), String> {
    let (kinds, names) = (rows.texts("kind")?, rows.texts("name")?);
    let columns = Group::NUMBERS.map(|name| rows.numbers(name));
    for i in 0..kinds.len() {
        let mut numbers = [0; Group::NUMBERS.len()];
        for (number, column) in numbers.iter_mut().zip(&columns) {
            *number = column.as_ref().map_err(String::clone)?[i];
        }
        group(tally, kinds[i], names[i])?.add_numbers(&numbers);
    }
    Ok(())
}

fn add_minutes(tally: &mut Tally, rows: &Rows<'_>) -> Result<(), String> {
    let (minutes, n) = (rows.numbers("minute")?, rows.numbers("n")?);
    let (sum_ns, max_ns) = (rows.numbers("sum_ns")?, rows.numbers("max_ns")?);
    let (zero, errors) = (rows.numbers("zero")?, rows.numbers("errors")?);
    let (all_coarse, slowest) = (rows.texts("coarse")?, rows.texts("slowest")?);
    for i in 0..minutes.len() {
        let mut coarse = [0; COARSE];
        for (own, four) in coarse.iter_mut().zip(all_coarse[i].chunks_exact(4)) {
            *own = u32::from_le_bytes([four[0], four[1], four[2], four[3]]);
        }
        let cell = Minute {
            n: n[i],
            sum_ns: sum_ns[i],
            max_ns: max_ns[i],
            zero: zero[i],
            errors: errors[i],
            coarse,
            slowest: slowest[i].to_vec(),
        };
        tally
            .minutes
            .entry(minutes[i] as i64)
            .or_default()
            .merge(&cell);
    }
    Ok(())
}

fn add_queries(shared: &Shared, rows: &Rows<'_>) -> Result<(), String> {
    let (hashes, texts) = (rows.numbers("hash")?, rows.texts("text")?);
    let (n, sum_ns, max_ns) = (
        rows.numbers("n")?,
        rows.numbers("sum_ns")?,
        rows.numbers("max_ns")?,
    );
    let (zero, errors) = (rows.numbers("zero")?, rows.numbers("errors")?);
    let first = rows.numbers("first")?;
    for i in 0..hashes.len() {
        let counts = Counts {
            n: n[i],
            sum_ns: sum_ns[i],
            max_ns: max_ns[i],
            zero: zero[i] as u32,
            errors: errors[i] as u32,
            first: first[i] as u32,
        };
        shared.add(hashes[i].max(1), texts[i], &counts);
    }
    Ok(())
}
