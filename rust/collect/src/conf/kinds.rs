//! The keys of each type of store.

use std::time::Duration;

use super::read::{PORT, inner, sub_store};
use super::scope::Scope;
use super::text::Block;
use super::{Buckets, Buffer, Events, Files, Hash, Kind, Multi, Network, Period, Retry};

const MOST: u64 = u64::MAX;

pub fn files(scope: &Scope<'_>) -> Files {
    if let Some("hdfs") = scope.text("fs_type") {
        let line = scope.find("fs_type").map_or(0, |entry| entry.line);
        let hint = "write to a folder, and move closed files from there";
        scope.wrong(
            line,
            "fs_type",
            "files cannot be written to HDFS".into(),
            hint,
        );
    } else {
        scope.word("fs_type", "std", &["std"]);
    }
    let named = |key: &str| {
        scope
            .text(key)
            .filter(|text| !text.is_empty())
            .map(String::from)
    };
    for key in ["base_filename", "sub_directory", "base_symlink_name"] {
        if let Some(entry) = scope.find(key)
            && entry.value.split('/').any(|part| part == "..")
        {
            let what = format!("{key}={} leads out of file_path", entry.value);
            scope.wrong(entry.line, key, what, "leave out the ..");
        }
    }
    let hostname = scope.yes("use_hostname_sub_directory", false);
    Files {
        path: scope.text("file_path").unwrap_or("/tmp").into(),
        base: named("base_filename"),
        sub_directory: if hostname {
            Some(crate::sys::hostname())
        } else {
            named("sub_directory")
        },
        period: period(scope),
        rotate_hour: scope.within("rotate_hour", 1, 0, 23) as u32,
        rotate_minute: scope.within("rotate_minute", 15, 0, 59) as u32,
        rotate_on_reopen: scope.yes("rotate_on_reopen", false),
        max_bytes: scope.number("max_size", 1_000_000_000),
        max_write_bytes: scope.number("max_write_size", 1_000_000).max(1) as usize,
        write_meta: scope.yes("write_meta", false),
        write_category: scope.yes("write_category", false),
        write_stats: scope.yes("write_stats", false),
        create_symlink: scope.yes("create_symlink", true),
        base_symlink: named("base_symlink_name"),
        chunk_bytes: scope.number("chunk_size", 0),
        add_newlines: scope.within("add_newlines", 0, 0, 1) == 1,
    }
}

fn period(scope: &Scope<'_>) -> Period {
    let Some(entry) = scope.find("rotate_period") else {
        return Period::Never;
    };
    match entry.value.as_str() {
        "never" => return Period::Never,
        "hourly" => return Period::Hourly,
        "daily" => return Period::Daily,
        _ => {}
    }
    let digits = entry.value.trim_end_matches(|c: char| !c.is_ascii_digit());
    let seconds = match &entry.value[digits.len()..] {
        "" | "s" => Some(1),
        "m" => Some(60),
        "h" => Some(3_600),
        "d" => Some(86_400),
        "w" => Some(604_800),
        _ => None,
    };
    match (digits.parse::<u64>(), seconds) {
        (Ok(count), Some(seconds)) if count > 0 => {
            Period::Every(Duration::from_secs(count.saturating_mul(seconds)))
        }
        _ => {
            let what = format!("rotate_period={}: scribed reads this as never", entry.value);
            let hint = "write hourly, daily, never, or a number with s, m, h, d or w";
            scope.wrong(entry.line, "rotate_period", what, hint);
            Period::Never
        }
    }
}

pub fn events(scope: &Scope<'_>) -> Events {
    scope.number("msg_buffer_size", 0);
    Events {
        flush_every: Duration::from_millis(scope.within("flush_frequency_ms", 3000, 1, MOST)),
        simple: scope.within("use_simple_file", 0, 0, 1) == 1,
    }
}

pub fn network(scope: &Scope<'_>) -> Network {
    let mut servers = Vec::new();
    if let Some(list) = scope.find("service_list") {
        let default = scope
            .find("list_default_port")
            .map(|_| scope.within("list_default_port", PORT.into(), 1, u16::MAX.into()) as u16);
        for item in list
            .value
            .split([' ', '\t', ','])
            .filter(|item| !item.is_empty())
        {
            let (host, port) = match item.rsplit_once(':') {
                Some((host, port)) => (host, port.parse().ok()),
                None => (item, default),
            };
            match port {
                Some(port) if port > 0 => servers.push((host.to_owned(), port)),
                _ => {
                    let what = format!("{item:?} names no port");
                    let hint = "write HOST:PORT, or list_default_port=PORT";
                    scope.wrong(list.line, "service_list", what, hint);
                }
            }
        }
        if list.value.is_empty() {
            let what = "service_list names no server".into();
            scope.wrong(list.line, "service_list", what, "write HOST:PORT HOST:PORT");
        }
    } else {
        let host = scope.needed(
            "remote_host",
            "write remote_host=HOST, or service_list=HOST:PORT",
        );
        scope.needed(
            "remote_port",
            "write remote_port=1463, or the port that it listens at",
        );
        let port = scope.within("remote_port", PORT.into(), 1, u16::MAX.into());
        servers.push((host.to_owned(), port as u16));
    }
    Network {
        servers,
        timeout: Duration::from_millis(scope.within("timeout", 5000, 1, MOST)),
        pooled: scope.yes("use_conn_pool", false),
        ignore_error: scope.yes("ignore_network_error", false),
    }
}

pub fn buffer(scope: &Scope<'_>) -> Option<Buffer> {
    let (first, second) = (inner(scope, "primary"), inner(scope, "secondary"));
    if let Some(entry) = scope.find("max_queue_length") {
        let what = "max_queue_length has no effect; Scribe has ignored it since 2010".into();
        scope.warn(
            entry.line,
            "max_queue_length",
            what,
            "max_queue_size limits a queue",
        );
    }
    let primary = sub_store(scope, first?)?;
    let secondary = sub_store(scope, second?)?;
    let replay = scope.yes("replay_buffer", true);
    if matches!(primary, Kind::Multi(_)) {
        let what = "the primary of a buffer cannot be a multi store".into();
        let hint = "make one multi store of several buffers";
        scope.wrong(first?.line, "primary", what, hint);
    }
    if replay && !matches!(secondary, Kind::File(_) | Kind::Null) {
        let what = "the secondary of a buffer must be a file or null: it is read again".into();
        scope.wrong(
            second?.line,
            "secondary",
            what,
            "write type=file, or replay_buffer=no",
        );
    }
    if replay && matches!(secondary, Kind::Null) {
        let what = "what the primary does not take is dropped: the secondary is null".into();
        scope.warn(
            second?.line,
            "secondary",
            what,
            "write type=file to keep it",
        );
    }
    let retry = if scope.yes("adaptive_backoff", false) {
        let least = scope.within("min_retry_interval", 5, 1, MOST);
        let most = scope.within("max_retry_interval", 100, 1, MOST);
        if least > most {
            let given = scope.find("min_retry_interval");
            let line = given
                .or_else(|| scope.find("max_retry_interval"))
                .map_or(0, |entry| entry.line);
            let what = format!(
                "min_retry_interval {least} is above max_retry_interval {most}; scribed takes 5 and 100"
            );
            let hint = "write a max_retry_interval that is larger";
            scope.wrong(line, "min_retry_interval", what, hint);
        }
        Retry::Adaptive {
            least,
            most: most.max(least),
            random: scope.number("max_random_offset", 20),
        }
    } else {
        let interval = scope.number("retry_interval", 300);
        Retry::Around {
            interval,
            // As scribed: it never waits less than half, or more than one and a half times.
            range: scope.number("retry_interval_range", 60).min(interval),
        }
    };
    Some(Buffer {
        primary,
        secondary,
        send_rate: scope.within("buffer_send_rate", 1, 1, MOST),
        retry,
        replay,
        flush_streaming: scope.yes("flush_streaming", false),
        bypass_max_ratio: scope.ratio("buffer_bypass_max_ratio", 0.75),
    })
}

pub fn buckets(scope: &Scope<'_>) -> Option<Buckets> {
    scope.needed(
        "num_buckets",
        "write num_buckets=N; there is one more, 0, for what has no key",
    );
    let count = scope.within("num_buckets", 1, 1, 100_000);
    let types = [
        "context_log",
        "random",
        "key_hash",
        "key_modulo",
        "key_range",
    ];
    if scope.find("bucket_type").is_none() {
        let what = "there is no bucket_type: scribed takes context_log, which few messages have";
        let hint = "write bucket_type=key_hash or another";
        scope.wrong(scope.block().line, "bucket_type", what.into(), hint);
    }
    let hash = match scope.word("bucket_type", "context_log", &types) {
        "random" => Hash::Random,
        "key_hash" => Hash::Key,
        "key_modulo" => Hash::Modulo,
        "key_range" => {
            // Without it scribed puts every message into bucket 0.
            scope.needed(
                "bucket_range",
                "write bucket_range=N: keys are from 0 to N - 1",
            );
            Hash::Range(scope.within("bucket_range", 1, 1, MOST))
        }
        _ => Hash::ContextLog,
    };
    let delimiter = match scope.number("delimiter", 0) {
        code @ 1..=255 => code as u8,
        _ => b':',
    };
    let stores = match scope.block().block("bucket") {
        Some(model) => alike(scope, model, count)?,
        None => {
            let one = |n| sub_store(scope, inner(scope, &format!("bucket{n}"))?);
            (0..=count).map(one).collect::<Option<Vec<_>>>()?
        }
    };
    Some(Buckets {
        hash,
        delimiter,
        remove_key: scope.yes("remove_key", false),
        stores,
    })
}

/// One `<bucket>` for all: each in a folder of its own, with its number.
fn alike(scope: &Scope<'_>, model: &Block, count: u64) -> Option<Vec<Kind>> {
    let hint = "write bucket_subdir=NAME: the folders are NAME000, NAME001 and so on";
    let subdir = scope.needed("bucket_subdir", hint);
    let offset = scope.within("bucket_offset", 0, 0, u32::MAX.into());
    let failures = scope.text("failure_bucket").filter(|name| !name.is_empty());
    let kind = sub_store(scope, model)?;
    if !matches!(kind, Kind::File(_) | Kind::ThriftFile(..)) {
        let what = "a <bucket> for all is a file or a thriftfile".into();
        let hint = "write <bucket0>, <bucket1> and so on for other stores";
        scope.wrong(model.line, "bucket", what, hint);
        // Buckets of buckets would be more than fit any memory.
        return None;
    }
    if model.entry("file_path").is_none() {
        let what = "the <bucket> has no file_path".into();
        scope.wrong(model.line, "file_path", what, "write file_path=FOLDER");
    }
    let folder = |number: u64| match failures {
        Some(name) if number == 0 => name.to_owned(),
        _ => format!("{subdir}{:03}", number + offset),
    };
    let one = |number| {
        let mut kind = kind.clone();
        if let Kind::File(files) | Kind::ThriftFile(files, _) = &mut kind {
            files.path = files.path.join(folder(number));
        }
        kind
    };
    Some((0..=count).map(one).collect())
}

pub fn multi(scope: &Scope<'_>) -> Option<Multi> {
    let all = scope.word("report_success", "all", &["all", "any"]) == "all";
    let block = scope.block();
    // From store0 or store1 on; scribed stops at the first number that is missing.
    let first = u32::from(block.block("store0").is_none());
    let names = (first..).map(|number| format!("store{number}"));
    let found: Vec<_> = names.map_while(|name| block.block(&name)).collect();
    if found.is_empty() {
        inner(scope, "store0");
    }
    for other in &block.blocks {
        if !found.iter().any(|block| std::ptr::eq(*block, other)) {
            let what = format!("<{}> is not counted on from the others", other.name);
            let hint = "number the stores without a gap: store0, store1, store2";
            scope.wrong(other.line, &other.name, what, hint);
        }
    }
    let stores: Option<Vec<_>> = found
        .into_iter()
        .map(|block| sub_store(scope, block))
        .collect();
    Some(Multi {
        all,
        stores: stores?,
    })
}
