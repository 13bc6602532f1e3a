//! From blocks and keys to [`Settings`], with every mistake on the way.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Duration;

use super::keys::{self, GLOBAL, REFUSED, TOP, TYPES, nearest};
use super::kinds::{buckets, buffer, events, files, multi, network};
use super::scope::Scope;
use super::text::{Block, parse};
use super::{Kind, Mistake, Pattern, Settings, TopStore, places};

/// Scribe's own.
pub const PORT: u16 = 1463;
const MOST: u64 = u64::MAX;

/// A store of a type that is not known.
const ANY: &str = "any";

/// The settings of a configuration, and its mistakes in the order of their lines. The settings are
/// to be used only where no mistake is fatal.
pub fn read(text: &str) -> (Settings, Vec<Mistake>) {
    let mistakes = RefCell::new(Vec::new());
    let file = parse(text, &mut mistakes.borrow_mut());
    let settings = settings(&Scope::new(&file, &mistakes));
    let mut mistakes = mistakes.into_inner();
    mistakes.sort_by_key(|mistake| mistake.line);
    (settings, mistakes)
}

fn settings(file: &Scope<'_>) -> Settings {
    known_keys(file, "", &[GLOBAL]);
    known_blocks(file, |name| name.starts_with("store"), "store");
    let number = |key, default| file.number(key, default);
    let stores: Vec<_> = file
        .block()
        .blocks
        .iter()
        .filter(|b| b.name.starts_with("store"))
        .collect();
    if stores.is_empty() {
        let hint = "write <store>, category=default, type=file, file_path=FOLDER, </store>";
        file.wrong(
            0,
            "store",
            "there is no <store>: nothing could be kept".into(),
            hint,
        );
    }
    let new_thread_per_category = file.yes("new_thread_per_category", true);
    let stores: Vec<_> = stores
        .into_iter()
        .filter_map(|block| top_store(file, block))
        .collect();
    for (line, place) in places::shared(&stores, new_thread_per_category) {
        let what = format!("another store writes {place} too: a buffer deletes what it has sent");
        file.wrong(
            line,
            "file_path",
            what,
            "give each a file_path or base_filename of its own",
        );
    }
    Settings {
        host: file.text("host").map(String::from),
        port: file.within("port", PORT.into(), 0, u16::MAX.into()) as u16,
        max_msg_per_second: number("max_msg_per_second", 0),
        max_queue_bytes: file.within("max_queue_size", 5_000_000, 1, MOST),
        check_interval: Duration::from_secs(number("check_interval", 5).max(1)),
        new_thread_per_category,
        threads: file.within("num_thrift_server_threads", 3, 1, 1024) as usize,
        max_conn: number("max_conn", 0) as usize,
        state_path: file.text("state_path").map(PathBuf::from),
        stores,
    }
}

fn top_store(file: &Scope<'_>, block: &Block) -> Option<TopStore> {
    let (kind, scope) = typed(file, block);
    let mut categories = Vec::new();
    if let Some(entry) = block.entry("category") {
        categories.extend(pattern(&scope, entry.line, &entry.value));
    }
    let listed = block.entry("categories");
    for name in listed
        .iter()
        .flat_map(|entry| entry.value.split([' ', '\t']))
    {
        if !name.is_empty() {
            categories.extend(pattern(&scope, listed?.line, name));
        }
    }
    if categories.is_empty() {
        let what = "this store is for no category".into();
        scope.wrong(
            block.line,
            "category",
            what,
            "write category=NAME, PREFIX* or default",
        );
    }
    let Some(kind) = kind else {
        untyped(&scope);
        return None;
    };
    let known = keys::of_type(kind).unwrap_or_default();
    known_keys(&scope, kind, &[TOP, known]);
    Some(TopStore {
        line: block.line,
        categories,
        several: listed.is_some(),
        target_write_bytes: scope.number("target_write_size", 16_384),
        max_write_interval: Duration::from_secs(scope.number("max_write_interval", 1).max(1)),
        must_succeed: scope.yes("must_succeed", true),
        fsync: match block.entry("fsync") {
            Some(_) => scope.yes("fsync", false),
            None => file.yes("fsync", false),
        },
        store: store(&scope, kind)?,
    })
}

fn pattern(scope: &Scope<'_>, line: u32, name: &str) -> Option<Pattern> {
    if name == "default" {
        return Some(Pattern::Default);
    }
    let stem = name.strip_suffix('*').unwrap_or(name);
    if name != "*" && !crate::route::allowed(stem.as_bytes()) {
        let what = format!("{name:?} cannot be a category: it could not be the name of a file");
        scope.wrong(
            line,
            "category",
            what,
            "leave out /, leading dots and control characters",
        );
        return None;
    }
    Some(if name.ends_with('*') {
        Pattern::Prefix(stem.into())
    } else {
        Pattern::Exact(name.into())
    })
}

/// The type of a store's block, and the block as its scope. Where the type, or its key, is misspelt,
/// that is told, and the nearest type is taken, so that the block's other mistakes are told too.
fn typed<'a>(around: &Scope<'a>, block: &'a Block) -> (Option<&'static str>, Scope<'a>) {
    let names = || TYPES.iter().map(|(name, _)| *name);
    // A key that is misspelt is told with the others.
    let given = block.entry("type").or_else(|| {
        let misspelt = |key: &str| !keys::anywhere(key) && meant(key, all_keys()) == Some("type");
        block.entries.iter().find(|entry| misspelt(&entry.key))
    });
    let Some(entry) = given else {
        let what = format!("<{}> has no type", block.name);
        let hint = format!(
            "write type= and one of {}",
            names().collect::<Vec<_>>().join(", ")
        );
        around.wrong(block.line, "type", what, &hint);
        return (None, around.inner(block, ""));
    };
    let mut kind = names().find(|name| *name == entry.value);
    if kind.is_none() {
        kind = nearest(&entry.value, names());
        let what = format!("there is no type of store {:?}", entry.value);
        let near = kind.unwrap_or("file");
        around.wrong(entry.line, "type", what, &format!("did you mean {near}?"));
    }
    (kind, around.inner(block, kind.unwrap_or_default()))
}

/// The key of a store that this one is most like.
fn meant<'a>(key: &str, known: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    nearest(key, std::iter::once("type").chain(known))
}

/// Complains of what no store has, in one whose type nobody can tell.
fn untyped(scope: &Scope<'_>) {
    let all: Vec<_> = TYPES.iter().map(|(_, keys)| *keys).chain([TOP]).collect();
    known_keys(scope, ANY, &all);
    for block in &scope.block().blocks {
        sub_store(scope, block);
    }
}

pub fn sub_store(around: &Scope<'_>, block: &Block) -> Option<Kind> {
    let (kind, scope) = typed(around, block);
    let Some(kind) = kind else {
        untyped(&scope);
        return None;
    };
    known_keys(&scope, kind, &[keys::of_type(kind).unwrap_or_default()]);
    store(&scope, kind)
}

fn store(scope: &Scope<'_>, kind: &str) -> Option<Kind> {
    let inside: &dyn Fn(&str) -> bool = match kind {
        "buffer" => &|name| matches!(name, "primary" | "secondary"),
        "bucket" => &|name| name.starts_with("bucket"),
        "multi" => &|name| name.starts_with("store"),
        "category" => &|name| name == "model",
        _ => &|_| false,
    };
    let most_like = match kind {
        "buffer" => "primary or secondary",
        "multi" => "store0",
        "category" => "model",
        _ => "bucket",
    };
    known_blocks(scope, inside, most_like);
    Some(match kind {
        "file" => Kind::File(files(scope)),
        "thriftfile" => Kind::ThriftFile(files(scope), events(scope)),
        "multifile" => Kind::PerCategory(Box::new(Kind::File(files(scope)))),
        "thriftmultifile" => {
            Kind::PerCategory(Box::new(Kind::ThriftFile(files(scope), events(scope))))
        }
        "network" => Kind::Network(network(scope)),
        "buffer" => Kind::Buffer(Box::new(buffer(scope)?)),
        "bucket" => Kind::Bucket(buckets(scope)?),
        "multi" => Kind::Multi(multi(scope)?),
        "category" => Kind::PerCategory(Box::new(sub_store(scope, inner(scope, "model")?)?)),
        _ => Kind::Null,
    })
}

/// The block of this name, which must be there.
pub fn inner<'a>(scope: &Scope<'a>, name: &str) -> Option<&'a Block> {
    let found = scope.block().block(name);
    if found.is_none() {
        let hint = format!("write <{name}>, its type and keys, </{name}>");
        scope.wrong(
            scope.block().line,
            name,
            format!("this store has no <{name}>"),
            &hint,
        );
    }
    found
}

/// Complains of keys that no store has, and warns of those that this one does not.
fn known_keys(scope: &Scope<'_>, kind: &str, lists: &[&[&str]]) {
    for entry in &scope.block().entries {
        let (owner, key) = entry.key.split_once("::").unwrap_or(("", &entry.key));
        if let Some((_, instead)) = REFUSED.iter().find(|(known, _)| *known == key) {
            scope.wrong(entry.line, key, format!("{key} is not supported"), instead);
            continue;
        }
        let known = || lists.iter().flat_map(|list| list.iter().copied());
        let here = match owner {
            "" => key == "type" && !kind.is_empty() || known().any(|known| known == key),
            owner => keys::of_type(owner).is_some_and(|keys| keys.contains(&key)),
        };
        if here {
            continue;
        }
        let place = match kind {
            "" => "file itself".into(),
            ANY => "store".into(),
            kind => format!("{kind} store"),
        };
        if owner.is_empty() && keys::anywhere(key) {
            let what = format!("{key} has no effect here: it is not a key of a {place}");
            scope.warn(entry.line, key, what, "leave it out, or move it");
            continue;
        }
        let near = match kind {
            "" => nearest(key, known()),
            _ => meant(key, known()),
        };
        let hint = match near.or_else(|| nearest(key, all_keys())) {
            Some(near) => format!("did you mean {near}?"),
            None if kind == ANY => "leave it out: no type of store has it".into(),
            None => format!(
                "keys of a {place}: {}",
                known().collect::<Vec<_>>().join(", ")
            ),
        };
        scope.wrong(
            entry.line,
            &entry.key,
            format!("there is no key {}", entry.key),
            &hint,
        );
    }
}

fn all_keys() -> impl Iterator<Item = &'static str> {
    TYPES
        .iter()
        .flat_map(|(_, keys)| keys.iter().copied())
        .chain(GLOBAL.iter().copied())
}

fn known_blocks(scope: &Scope<'_>, known: impl Fn(&str) -> bool, most_like: &str) {
    for block in &scope.block().blocks {
        if !known(&block.name) {
            let what = format!("<{}> has no place here", block.name);
            scope.wrong(
                block.line,
                &block.name,
                what,
                &format!("did you mean <{most_like}>?"),
            );
        }
    }
}
