//! One query: its parts searched and merged, the reply written.

use std::collections::HashMap;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread::{self, Thread};

use tantivy::query::{EnableScoring, Query as TantivyQuery, Weight};
use tantivy::{DocAddress, Searcher, TantivyDocument};

use super::candidate::{Candidate, Value, Want};
use super::collect::{Found, collect};
use super::compile::compile;
use super::fields::{Fields, read_id};
use super::pool::{Pool, Task};
use super::snippets::Snippets;
use super::view::View;
use crate::failure::Failure;
use crate::query::{Checked, Key, Matching, Mode};
use crate::reply::{Answer, Counts, Hit};
use crate::schema::Schema;

/// How queries are to be done: the parameters that searching depends on.
#[derive(Debug, Clone, Copy)]
pub struct Manner {
    /// BM25 statistics over all parts, or of each part alone.
    pub global: bool,
    /// Parts merged in groups of about the square root of their number first.
    pub two_level: bool,
}

/// Answers `query` from `view`.
pub fn search<'s>(
    query: &Checked,
    schema: &'s Schema,
    fields: &Fields,
    view: &Arc<View>,
    manner: Manner,
    pool: Option<&Pool>,
) -> Result<Answer<'s>, Failure> {
    let compiled = compile(query, fields);
    let mut counted = query.facets.clone();
    if let Some(field) = query.group_by {
        counted.push((field, query.limit));
    }
    let segments: usize = view.parts.iter().map(|part| part.segments.len()).sum();
    let want = Want {
        keys: query.keys.clone(),
        best: (query.offset + query.limit).min(view.documents() as usize)
            * usize::from(query.limit > 0),
        scored: !matches!(query.matching, Matching::All),
        // Measured: for unions and intersections counting first and skipping blocks afterwards
        // takes longer than one pass that scores every document.
        prune: query.conditions.is_empty()
            && matches!(&query.matching, Matching::Terms { terms, fields, mode, .. }
                if terms.len() == 1 && fields.len() == 1 && *mode != Mode::Prefix && *mode != Mode::Fuzzy),
        counted,
        alone: segments == 1,
    };
    let found = match pool {
        Some(pool) => spread(pool, view, want.clone(), compiled, manner)?,
        None => {
            let job = Job::new(Arc::clone(view), want.clone(), compiled, manner)?;
            (0..view.parts.len()).for_each(|part| job.do_part(part));
            job.result()?
        }
    };
    answer(query, schema, fields, view, &want, found)
}

/// Where a result is left for whoever merges it.
type Slot = Mutex<Option<Result<Found, String>>>;

/// All parts of one query, and what is known of them so far.
struct Job {
    view: Arc<View>,
    want: Want,
    query: Box<dyn TantivyQuery>,
    /// One for all parts where statistics are global.
    shared: Option<Box<dyn Weight>>,
    group: usize,
    slots: Vec<Slot>,
    groups: Vec<(AtomicUsize, Slot)>,
    next: AtomicUsize,
    left: AtomicUsize,
    waiting: Thread,
}

impl Job {
    fn new(
        view: Arc<View>,
        want: Want,
        query: Box<dyn TantivyQuery>,
        manner: Manner,
    ) -> Result<Job, Failure> {
        let parts = view.parts.len();
        let scoring = want.best > 0 && want.scored && scored(&want);
        let searcher = &view.parts[0].searcher;
        let shared = if manner.global || parts == 1 {
            Some(
                query
                    .weight(enable(scoring, &*view, searcher))
                    .map_err(failure)?,
            )
        } else {
            None
        };
        let group = match manner.two_level {
            true => (1..=parts).find(|n| n * n >= parts).unwrap_or(1),
            false => 1,
        };
        let groups = (0..parts.div_ceil(group)).map(|number| {
            let size = group.min(parts - number * group);
            (AtomicUsize::new(size), Mutex::new(None))
        });
        Ok(Job {
            group,
            groups: groups.collect(),
            slots: (0..parts).map(|_| Mutex::new(None)).collect(),
            next: AtomicUsize::new(0),
            left: AtomicUsize::new(parts),
            waiting: thread::current(),
            view,
            want,
            query,
            shared,
        })
    }

    fn search_part(&self, part: usize) -> tantivy::Result<Found> {
        let place = &self.view.parts[part];
        let own;
        let weight = match &self.shared {
            Some(weight) => &**weight,
            None => {
                let scoring = self.want.best > 0 && self.want.scored && scored(&self.want);
                own = self.query.weight(enable(scoring, place, &place.searcher))?;
                &*own
            }
        };
        let mut found = Vec::with_capacity(place.segments.len());
        for (ord, segment) in place.segments.iter().enumerate() {
            let reader = place.searcher.segment_reader(ord as u32);
            found.push(collect(
                &self.want,
                weight,
                reader,
                segment,
                (part as u32, ord as u32),
            )?);
        }
        Ok(merge(found, &self.want))
    }

    /// Searches a part; whoever ends the last part of a group merges the group.
    fn do_part(&self, part: usize) {
        let done = catch_unwind(AssertUnwindSafe(|| self.search_part(part)));
        let result = match done {
            Ok(Ok(found)) => Ok(found),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err(format!("searching part {part} panicked")),
        };
        *self.slots[part].lock().expect("no panic while held") = Some(result);
        let number = part / self.group;
        let (open, slot) = &self.groups[number];
        if self.group > 1 && open.fetch_sub(1, Ordering::AcqRel) == 1 {
            let last = self.slots.len().min((number + 1) * self.group);
            let merged = gather(&self.slots[number * self.group..last], &self.want);
            *slot.lock().expect("no panic while held") = Some(merged);
        }
    }

    fn result(&self) -> Result<Found, Failure> {
        let merged = if self.group > 1 {
            let taken = self.groups.iter().map(|(_, slot)| take(slot));
            taken
                .collect::<Result<Vec<_>, _>>()
                .map(|all| merge(all, &self.want))
        } else {
            gather(&self.slots, &self.want)
        };
        merged.map_err(Failure::Error)
    }
}

impl Task for Job {
    fn work(&self) {
        loop {
            let part = self.next.fetch_add(1, Ordering::Relaxed);
            if part >= self.slots.len() {
                return;
            }
            self.do_part(part);
            if self.left.fetch_sub(1, Ordering::AcqRel) == 1 {
                self.waiting.unpark();
            }
        }
    }
}

fn spread(
    pool: &Pool,
    view: &Arc<View>,
    want: Want,
    query: Box<dyn TantivyQuery>,
    manner: Manner,
) -> Result<Found, Failure> {
    let job = Arc::new(Job::new(Arc::clone(view), want, query, manner)?);
    pool.submit(&job, view.parts.len());
    while job.left.load(Ordering::Acquire) > 0 {
        thread::park();
    }
    job.result()
}

fn take(slot: &Slot) -> Result<Found, String> {
    let taken = slot.lock().expect("no panic while held").take();
    taken.unwrap_or_else(|| Err("a part was not searched".into()))
}

fn gather(slots: &[Slot], want: &Want) -> Result<Found, String> {
    Ok(merge(
        slots.iter().map(take).collect::<Result<_, _>>()?,
        want,
    ))
}

fn scored(want: &Want) -> bool {
    want.keys.is_empty() || want.keys.iter().any(|key| matches!(key, Key::Score { .. }))
}

fn enable<'a>(
    scoring: bool,
    statistics: &'a dyn tantivy::query::Bm25StatisticsProvider,
    searcher: &'a Searcher,
) -> EnableScoring<'a> {
    if scoring {
        EnableScoring::enabled_from_statistics_provider(statistics, searcher)
    } else {
        EnableScoring::disabled_from_searcher(searcher)
    }
}

/// Segments, parts or groups into one.
fn merge(mut found: Vec<Found>, want: &Want) -> Found {
    if found.len() == 1 {
        return found.remove(0);
    }
    let total = found.iter().map(|one| one.total).sum();
    let mut hits: Vec<Candidate> = Vec::new();
    let mut counts: Vec<HashMap<Value, u64>> = vec![HashMap::new(); want.counted.len()];
    for one in found {
        hits.extend(one.hits);
        for (sum, more) in counts.iter_mut().zip(one.counts) {
            if sum.is_empty() {
                *sum = more;
                continue;
            }
            for (value, count) in more {
                *sum.entry(value).or_default() += count;
            }
        }
    }
    hits.sort_unstable_by(|a, b| a.compare(b, &want.keys));
    hits.truncate(want.best);
    Found {
        total,
        hits,
        counts,
    }
}

fn answer<'s>(
    query: &Checked,
    schema: &'s Schema,
    fields: &Fields,
    view: &View,
    want: &Want,
    found: Found,
) -> Result<Answer<'s>, Failure> {
    let scored = query.scored();
    let snippets = match query.snippets.as_slice() {
        [] => None,
        _ => Some(Snippets::new(query, schema, fields, view).map_err(failure)?),
    };
    let mut hits = Vec::new();
    for hit in found.hits.into_iter().skip(query.offset).take(query.limit) {
        let part = &view.parts[hit.part as usize];
        let id = read_id(&part.segments[hit.segment as usize].id, hit.doc);
        let (mut stored, mut pieces) = (None, None);
        if !query.fields.is_empty() || snippets.is_some() {
            let address = DocAddress::new(hit.segment, hit.doc);
            let document: TantivyDocument = part.searcher.doc(address).map_err(failure)?;
            if !query.fields.is_empty() {
                stored = Some(fields.stored(&document, schema, &query.fields));
            }
            if let Some(snippets) = &snippets {
                pieces = Some(snippets.of(&document, view).map_err(failure)?);
            }
        }
        hits.push(Hit {
            id,
            score: scored.then_some(hit.score),
            fields: stored,
            snippets: pieces,
        });
    }
    let mut lists = found
        .counts
        .into_iter()
        .zip(&want.counted)
        .map(|(counts, &(field, limit))| {
            let kind = schema.fields[field].kind;
            let mut list: Vec<(Value, u64)> = counts.into_iter().collect();
            list.sort_unstable_by(|a, b| b.1.cmp(&a.1).then_with(|| a.0.cmp(&b.0)));
            list.truncate(limit);
            list.into_iter()
                .map(|(value, count)| (value.json(kind), count))
                .collect::<Counts>()
        });
    let facets = query.facets.iter().map(|&(field, _)| {
        (
            schema.fields[field].name.as_str(),
            lists.next().unwrap_or_default(),
        )
    });
    let facets = facets.collect();
    let groups = lists.next().unwrap_or_default();
    Ok(Answer {
        total: found.total,
        hits,
        facets,
        groups,
    })
}

/// tantivy's error as status 1.
pub fn failure(error: tantivy::TantivyError) -> Failure {
    Failure::Error(format!("tantivy: {error}"))
}
