//! tantivy called directly, without the wire: what the host's own cost is measured against.
//!
//!     direct ingest FILE.jsonl --schema SCHEMA.json --data DIR [--indexing_threads N] ...
//!     direct query QUERIES.jsonl --data DIR [--repeat R] [--collector tantivy|host]
//!
//! `ingest` reads documents as a batch has them, a line each, and prints documents a second.
//! Files as the host writes them, so each can open the other's index of one part.
//! `query` reads query payloads, a line each, goes through all of them R times in order (so that
//! none finds its own data warm from the moment before), and prints for each the median in
//! nanoseconds, from the checked query to ids and total. With the collector `tantivy` (relevance
//! only: no sort, facets or groups) it is what tantivy's own `TopDocs` and `Count` take.

use std::error::Error;
use std::fs::{self, File};
use std::io::{BufRead, BufReader, BufWriter, Write};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use searchbench_hosts::options::{Kind, Options, Spec};
use searchbench_hosts::query::{Checked, Query};
use searchbench_hosts::schema::{Schema, parse_document};
use searchbench_hosts::tantivy::compile::compile;
use searchbench_hosts::tantivy::fields::{Fields, read_id};
use searchbench_hosts::tantivy::search::{Manner, search};
use searchbench_hosts::tantivy::view::View;
use searchbench_hosts::tantivy::{Manifest, OPTIONS};
use serde_json::json;
use tantivy::collector::{Count, TopDocs};
use tantivy::indexer::{IndexWriterOptions, NoMergePolicy};
use tantivy::{Index, IndexWriter, ReloadPolicy};

const OWN: &[Spec] = &[
    Spec {
        name: "data",
        kind: Kind::Text,
        default: "",
    },
    Spec {
        name: "schema",
        kind: Kind::Text,
        default: "",
    },
    Spec {
        name: "repeat",
        kind: Kind::Int(1, 1000),
        default: "5",
    },
    Spec {
        name: "collector",
        kind: Kind::Choice(&["tantivy", "host"]),
        default: "tantivy",
    },
];

fn main() -> Result<(), Box<dyn Error>> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [verb, file, rest @ ..] = words.as_slice() else {
        return Err("direct ingest|query FILE --data DIR ...".into());
    };
    let options = Options::parse(&[OWN, OPTIONS], rest)?;
    match verb.as_str() {
        "ingest" => ingest(file, &options),
        "query" => query(file, &options),
        other => Err(format!("ingest or query, not {other:?}").into()),
    }
}

fn ingest(file: &str, options: &Options) -> Result<(), Box<dyn Error>> {
    let data = PathBuf::from(options.text("data"));
    let schema: Schema = serde_json::from_slice(&fs::read(options.text("schema"))?)?;
    let fields = Fields::new(&schema, false);
    fs::create_dir_all(data.join("part-0"))?;
    let index = Index::create_in_dir(data.join("part-0"), fields.tantivy.clone())?;
    Fields::register(&index);
    let threads = options.size("indexing_threads");
    let writing = IndexWriterOptions::builder()
        .num_worker_threads(threads)
        .memory_budget_per_thread((options.size("indexing_memory_mb") << 20) / threads)
        .build();
    let mut writer: IndexWriter = index.writer_with_options(writing)?;
    writer.set_merge_policy(Box::new(NoMergePolicy));
    // Read beforehand: the host, too, is given documents from memory.
    let text = fs::read_to_string(file)?;
    let start = Instant::now();
    let mut count = 0u64;
    for line in text.lines() {
        let document =
            parse_document(line, &schema).map_err(|(id, reason)| format!("{id}: {reason}"))?;
        let mut out = fields.document(&document, line.len())?;
        out.add_u64(fields.seq, count);
        writer.add_document(out)?;
        count += 1;
    }
    let added = start.elapsed().as_secs_f64();
    writer.commit()?;
    let committed = start.elapsed().as_secs_f64();
    let segments = index.searchable_segment_ids()?;
    if options.text("segments") == "merged" && segments.len() > 1 {
        writer.merge(&segments).wait()?;
        writer.garbage_collect_files().wait()?;
    }
    writer.wait_merging_threads()?;
    let settled = start.elapsed().as_secs_f64();
    let manifest = Manifest {
        format: 1,
        parts: 1,
        split: "round-robin".into(),
        schema,
        keys: false,
    };
    fs::write(
        data.join("searchbench.json"),
        serde_json::to_vec(&manifest)?,
    )?;
    println!(
        "{}",
        json!({
            "documents": count, "add_s": added, "commit_s": committed, "settled_s": settled,
            "documents_per_s": count as f64 / committed,
        })
    );
    Ok(())
}

fn query(file: &str, options: &Options) -> Result<(), Box<dyn Error>> {
    let data = PathBuf::from(options.text("data"));
    let manifest: Manifest = serde_json::from_slice(&fs::read(data.join("searchbench.json"))?)?;
    let schema = manifest.schema;
    let fields = Fields::new(&schema, false);
    let index = Index::open_in_dir(data.join("part-0"))?;
    let reader: tantivy::IndexReader = index
        .reader_builder()
        .reload_policy(ReloadPolicy::Manual)
        .try_into()?;
    let view = Arc::new(View::new(vec![reader.searcher()], &fields, &schema)?);
    let own = options.text("collector") == "host";
    let mut out = BufWriter::new(std::io::stdout());
    let mut queries = Vec::new();
    for (number, line) in BufReader::new(File::open(file)?).lines().enumerate() {
        let query: Query = serde_json::from_str(&line?)?;
        let checked = query
            .check(&schema)
            .map_err(|failure| format!("query {number}: {failure:?}"))?;
        queries.push((checked, Vec::new(), 0));
    }
    let manner = Manner {
        global: true,
        two_level: false,
    };
    for _ in 0..options.size("repeat") {
        for (number, (checked, times, total)) in queries.iter_mut().enumerate() {
            let start = Instant::now();
            let (ids, found) = if own {
                let answer = search(checked, &schema, &fields, &view, manner, None)
                    .map_err(|failure| format!("query {number}: {failure:?}"))?;
                let ids = answer.hits.into_iter().map(|hit| hit.id).collect();
                (ids, answer.total)
            } else {
                plainly(checked, &fields, &view)?
            };
            times.push(start.elapsed().as_nanos() as u64);
            *total = found;
            std::hint::black_box::<Vec<String>>(ids);
        }
    }
    for (number, (_, mut times, total)) in queries.into_iter().enumerate() {
        times.sort_unstable();
        let median = times[times.len() / 2];
        writeln!(
            out,
            "{}",
            json!({"query": number, "ns": median, "total": total})
        )?;
    }
    out.flush()?;
    Ok(())
}

/// As tantivy's own examples do it.
fn plainly(
    checked: &Checked,
    fields: &Fields,
    view: &View,
) -> Result<(Vec<String>, u64), Box<dyn Error>> {
    if !checked.keys.is_empty() || !checked.facets.is_empty() || checked.group_by.is_some() {
        return Err("the collector tantivy does relevance only; use --collector host".into());
    }
    let part = &view.parts[0];
    let query = compile(checked, fields);
    let best = TopDocs::with_limit(checked.limit.max(1))
        .and_offset(checked.offset)
        .order_by_score();
    let (top, total) = part.searcher.search(&*query, &(best, Count))?;
    let ids = top
        .iter()
        .map(|(_, at)| read_id(&part.segments[at.segment_ord as usize].id, at.doc_id));
    Ok((ids.collect(), total as u64))
}
