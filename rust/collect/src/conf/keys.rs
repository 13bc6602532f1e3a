//! Every key that a configuration may have, by where it may stand.

/// Of the file itself.
pub const GLOBAL: &[&str] = &[
    "port",
    "max_msg_per_second",
    "max_queue_size",
    "check_interval",
    "new_thread_per_category",
    "num_thrift_server_threads",
    "max_conn",
    "host",
    "state_path",
    "fsync",
];

/// Of every `<store>` that is in no other.
pub const TOP: &[&str] = &[
    "category",
    "categories",
    "target_write_size",
    "max_write_interval",
    "must_succeed",
    "fsync",
];

const FILE: &[&str] = &[
    "file_path",
    "base_filename",
    "sub_directory",
    "use_hostname_sub_directory",
    "rotate_period",
    "rotate_hour",
    "rotate_minute",
    "rotate_on_reopen",
    "max_size",
    "max_write_size",
    "write_meta",
    "write_category",
    "write_stats",
    "create_symlink",
    "base_symlink_name",
    "fs_type",
    "chunk_size",
    "add_newlines",
];
const THRIFTFILE: &[&str] = &[
    "file_path",
    "base_filename",
    "sub_directory",
    "use_hostname_sub_directory",
    "rotate_period",
    "rotate_hour",
    "rotate_minute",
    "rotate_on_reopen",
    "max_size",
    "max_write_size",
    "write_meta",
    "write_category",
    "write_stats",
    "create_symlink",
    "base_symlink_name",
    "fs_type",
    "chunk_size",
    "flush_frequency_ms",
    "msg_buffer_size",
    "use_simple_file",
];
const NETWORK: &[&str] = &[
    "remote_host",
    "remote_port",
    "timeout",
    "use_conn_pool",
    "ignore_network_error",
    "service_list",
    "list_default_port",
];
const BUFFER: &[&str] = &[
    "max_queue_length",
    "buffer_send_rate",
    "retry_interval",
    "retry_interval_range",
    "replay_buffer",
    "flush_streaming",
    "buffer_bypass_max_ratio",
    "adaptive_backoff",
    "min_retry_interval",
    "max_retry_interval",
    "max_random_offset",
];
const BUCKET: &[&str] = &[
    "num_buckets",
    "bucket_type",
    "delimiter",
    "remove_key",
    "bucket_range",
    "bucket_subdir",
    "bucket_offset",
    "failure_bucket",
];

/// The types of stores and their keys, beside `type` and, of the outermost, [`TOP`].
pub const TYPES: &[(&str, &[&str])] = &[
    ("file", FILE),
    ("thriftfile", THRIFTFILE),
    ("network", NETWORK),
    ("buffer", BUFFER),
    ("bucket", BUCKET),
    ("null", &[]),
    ("multi", &["report_success"]),
    ("category", &[]),
    ("multifile", FILE),
    ("thriftmultifile", THRIFTFILE),
];

/// What scribed knows and this does not, and what to do instead.
pub const REFUSED: &[(&str, &str)] = &[
    (
        "smc_service",
        "name the servers: service_list=HOST:PORT HOST:PORT",
    ),
    (
        "service_name",
        "name the servers: service_list=HOST:PORT HOST:PORT",
    ),
    (
        "service_options",
        "name the servers: service_list=HOST:PORT HOST:PORT",
    ),
    (
        "service_cache_timeout",
        "leave it out: service_list is not looked up",
    ),
    (
        "dynamic_config_type",
        "name the server: remote_host and remote_port",
    ),
    ("bucket_id", "name the server: remote_host and remote_port"),
    (
        "bucket_updater_host",
        "name the server: remote_host and remote_port",
    ),
    (
        "bucket_updater_port",
        "name the server: remote_host and remote_port",
    ),
    (
        "bucket_updater_service",
        "name the server: remote_host and remote_port",
    ),
    (
        "bucket_updater_service_options",
        "name the server: remote_host and remote_port",
    ),
    (
        "bucket_updater_ttl",
        "name the server: remote_host and remote_port",
    ),
];

pub fn of_type(name: &str) -> Option<&'static [&'static str]> {
    TYPES
        .iter()
        .find(|(known, _)| *known == name)
        .map(|(_, keys)| *keys)
}

/// Is it a key of any place at all?
pub fn anywhere(key: &str) -> bool {
    let mut lists = TYPES.iter().map(|(_, keys)| *keys).chain([GLOBAL, TOP]);
    key == "type" || lists.any(|keys| keys.contains(&key))
}

/// The one of `names` that is most like this one; the first of several.
pub fn nearest<'a>(given: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    const ALIKE: f64 = 0.7;
    // Nothing is like what is that long, and to find that out takes as much time as its square.
    const LONGEST: usize = 100;
    if given.len() > LONGEST {
        return None;
    }
    let mut best = (ALIKE, None);
    for name in names {
        let alike = strsim::jaro_winkler(given, name);
        if alike > best.0 {
            best = (alike, Some(name));
        }
    }
    best.1
}
