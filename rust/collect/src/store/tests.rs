//! Stores by themselves: what they write, by which names, and what they read again.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::{Purpose, Spool, Store, build, read_records};
use crate::batch::{Batch, Name};
use crate::conf::read;
use crate::counters::Counts;
use crate::sys::Local;

pub fn purpose() -> Purpose {
    Purpose {
        category: "web".into(),
        copied: false,
        shared: false,
        fsync: true,
        counts: Arc::new(Counts::default()),
        pool: Arc::default(),
    }
}

/// The store of these lines, which are those of `<store>` but its category.
pub fn store(lines: &str) -> Box<dyn Store> {
    let (settings, mistakes) = read(&format!("<store>\ncategory=web\n{lines}\n</store>"));
    assert!(mistakes.is_empty(), "{mistakes:?}");
    build(&settings.stores[0].store, &purpose())
}

pub fn file(folder: &Path, lines: &str) -> Box<dyn Store> {
    store(&format!(
        "type=file\nfile_path={}\n{lines}",
        folder.display()
    ))
}

pub fn batch<M: AsRef<[u8]>>(messages: &[M]) -> Batch {
    let name: Name = Arc::from(&b"web"[..]);
    let mut batch = Batch::default();
    messages
        .iter()
        .for_each(|message| batch.push(&name, message.as_ref()));
    batch
}

pub fn text(folder: &Path, name: &str) -> Vec<u8> {
    fs::read(folder.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
}

pub fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap();
    let mut all: Vec<_> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    all.sort();
    all
}

#[test]
fn a_file_above_max_size_is_followed_by_the_next() {
    let place = tempfile::tempdir().unwrap();
    let mut store = file(
        place.path(),
        "max_size=10\nmax_write_size=1\nwrite_meta=yes",
    );
    store
        .keep(&mut batch(&["12345", "67890", "1", "next"]))
        .unwrap();
    store.close();
    let next = place.path().join("web_00001");
    let meta = format!("12345678901scribe_meta<new_logfile>: {}", next.display());
    assert_eq!(text(place.path(), "web_00000"), meta.into_bytes());
    assert_eq!(text(place.path(), "web_00001"), b"next");
    assert_eq!(
        fs::read_link(place.path().join("web_current")).unwrap(),
        Path::new("web_00001")
    );
}

#[test]
fn a_start_goes_on_with_the_newest_file_or_a_new_one_where_that_is_asked_for() {
    let place = tempfile::tempdir().unwrap();
    for (lines, expected) in [
        ("", "web_00000"),
        ("", "web_00000"),
        ("rotate_on_reopen=yes", "web_00001"),
    ] {
        let mut store = file(place.path(), lines);
        store.keep(&mut batch(&["x"])).unwrap();
        assert_eq!(
            fs::read_link(place.path().join("web_current")).unwrap(),
            Path::new(expected)
        );
    }
    assert_eq!(text(place.path(), "web_00000"), b"xx");
}

#[test]
fn files_that_rotate_by_the_clock_have_their_date_and_the_hour_to_begin_with() {
    let now = Local::now();
    let place = tempfile::tempdir().unwrap();
    file(place.path(), "rotate_period=daily\ncreate_symlink=no")
        .ready()
        .unwrap();
    file(
        &place.path().join("b"),
        "rotate_period=hourly\ncreate_symlink=no",
    )
    .ready()
    .unwrap();
    assert_eq!(
        names(place.path()),
        ["b".to_owned(), format!("web-{}_00000", now.date())]
    );
    let hour = format!("web-{}_{:05}", now.date(), now.hour);
    assert_eq!(names(&place.path().join("b")), [hour]);
}

#[test]
fn no_message_crosses_the_border_of_a_chunk_that_it_could_do_without() {
    let place = tempfile::tempdir().unwrap();
    let mut store = file(place.path(), "chunk_size=8\nmax_write_size=1");
    let messages = ["12345", "abc", "6789", "wxyz1", "longer than a chunk", "e"];
    store.keep(&mut batch(&messages)).unwrap();
    let written = text(place.path(), "web_00000");
    let expected = b"12345abc6789\0\0\0\0wxyz1\0\0\0longer than a chunke";
    assert_eq!(written, expected, "{}", written.escape_ascii());
}

#[test]
fn categories_newlines_and_statistics_are_written() {
    let place = tempfile::tempdir().unwrap();
    let mut store = file(
        place.path(),
        "write_category=yes\nadd_newlines=1\nwrite_stats=yes",
    );
    store.keep(&mut batch(&["a", ""])).unwrap();
    store.close();
    assert_eq!(text(place.path(), "web_00000"), b"web\na\nweb\n\n");
    let stats = String::from_utf8(text(place.path(), "scribe_stats")).unwrap();
    assert!(
        stats.contains("wrote <11> bytes in <2> events to file"),
        "{stats}"
    );
}

#[test]
fn a_line_that_a_crash_left_half_does_not_swallow_the_next() {
    let place = tempfile::tempdir().unwrap();
    fs::write(place.path().join("web_00000"), "whole\nha").unwrap();
    file(place.path(), "add_newlines=1")
        .keep(&mut batch(&["next"]))
        .unwrap();
    assert_eq!(text(place.path(), "web_00000"), b"whole\nha\nnext\n");
}

#[test]
fn a_file_that_was_renamed_is_opened_anew() {
    let place = tempfile::tempdir().unwrap();
    let mut store = file(place.path(), "");
    store.keep(&mut batch(&["old"])).unwrap();
    fs::rename(place.path().join("web_00000"), place.path().join("moved")).unwrap();
    store.check(0.0);
    store.keep(&mut batch(&["new"])).unwrap();
    assert_eq!(text(place.path(), "moved"), b"old");
    assert_eq!(text(place.path(), "web_00000"), b"new");
}

#[test]
fn a_thriftfile_has_events_and_a_new_file_for_each_start() {
    let place = tempfile::tempdir().unwrap();
    let lines = format!(
        "type=thriftfile\nfile_path={}\nchunk_size=16",
        place.path().display()
    );
    for _ in 0..2 {
        let mut store = store(&lines);
        store.keep(&mut batch(&["12345678", "12345", "1"])).unwrap();
        store.close();
    }
    let event =
        |message: &str| [&(message.len() as u32).to_ne_bytes(), message.as_bytes()].concat();
    let expected = [event("12345678"), vec![0; 4], event("12345"), event("1")].concat();
    assert_eq!(text(place.path(), "web_00000"), expected);
    assert_eq!(text(place.path(), "web_00001"), expected);
}

#[test]
fn what_has_gone_to_a_bucket_without_its_key_is_not_there_twice() {
    let place = tempfile::tempdir().unwrap();
    let lines = format!(
        "type=bucket\nnum_buckets=2\nbucket_type=key_modulo\nremove_key=yes\nbucket_subdir=b\n\
         <bucket>\ntype=file\nfile_path={}\n</bucket>",
        place.path().display()
    );
    let mut store = store(&lines);
    // Bucket 2 cannot be written: a file lies where its folder should be.
    fs::write(place.path().join("b002"), "").unwrap();
    let mut messages = batch(&["0:a", "1:b", "2:c", "none"]);
    store.keep(&mut messages).unwrap_err();
    let left: Vec<_> = messages
        .iter()
        .map(|(_, message)| message.to_vec())
        .collect();
    assert_eq!(left, [b"1:b"]);
    fs::remove_file(place.path().join("b002")).unwrap();
    store.keep(&mut messages).unwrap();
    assert_eq!(text(place.path(), "b001/web_00000"), b"ac");
    assert_eq!(text(place.path(), "b002/web_00000"), b"b");
    assert_eq!(text(place.path(), "b000/web_00000"), b"none");
}

fn spool(folder: &Path, shared: bool, max: u64) -> Spool {
    Spool::new(
        PathBuf::from(folder),
        "web".into(),
        "web",
        shared,
        max,
        true,
    )
}

fn all_of(spool: &mut Spool) -> Vec<(Vec<u8>, Vec<u8>)> {
    let mut all = Vec::new();
    while let Some(file) = spool.oldest().unwrap() {
        all.extend(
            file.messages
                .iter()
                .map(|(name, text)| (name.to_vec(), text.to_vec())),
        );
        spool.remove(file.number).unwrap();
    }
    all
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(64))]

    #[test]
    fn what_was_buffered_comes_back_whole_and_in_order(
        messages in proptest::collection::vec(
            (0..3usize, proptest::collection::vec(proptest::num::u8::ANY, 0..50)), 0..60),
        shared in proptest::bool::ANY,
        max in 1..300u64,
    ) {
        let place = tempfile::tempdir().unwrap();
        let names: [Name; 3] = if shared { [&b"a"[..], b"b", b"c"] } else { [&b"web"[..]; 3] }
            .map(Arc::from);
        let mut spool = spool(place.path(), shared, max);
        for part in messages.chunks(7) {
            let mut batch = Batch::default();
            part.iter().for_each(|(name, message)| batch.push(&names[*name], message));
            spool.append(&mut batch).unwrap();
        }
        let expected: Vec<_> =
            messages.iter().map(|(name, message)| (names[*name].to_vec(), message.clone())).collect();
        proptest::prop_assert_eq!(all_of(&mut spool), expected);
    }

    #[test]
    fn a_buffered_file_that_is_cut_gives_the_records_before_the_cut(
        lengths in proptest::collection::vec(0..20usize, 1..20), share in 0.0..1.0f64,
    ) {
        let record = |length: &usize| [&(*length as u32).to_le_bytes()[..], &vec![7; *length]].concat();
        let bytes: Vec<u8> = lengths.iter().flat_map(record).collect();
        let cut = (bytes.len() as f64 * share) as usize;
        let name: Name = Arc::from(&b"web"[..]);
        let (batch, whole) = read_records(&bytes[..cut], Some(&name));
        let ends = lengths.iter().scan(0, |end, length| { *end += 4 + length; Some(*end) });
        let fit: Vec<_> = ends.take_while(|end| *end <= cut).collect();
        proptest::prop_assert_eq!(batch.len(), fit.len());
        proptest::prop_assert_eq!(whole, fit.last().copied().unwrap_or(0));
    }
}

#[test]
fn a_file_of_which_a_part_was_sent_has_the_rest() {
    let place = tempfile::tempdir().unwrap();
    let mut spool = spool(place.path(), false, 0);
    spool.append(&mut batch(&["a", "b", "c"])).unwrap();
    let mut file = spool.oldest().unwrap().unwrap();
    file.messages.drop_front(1);
    spool.replace(file.number, &file.messages).unwrap();
    spool.append(&mut batch(&["d"])).unwrap();
    let texts: Vec<_> = all_of(&mut spool)
        .into_iter()
        .map(|(_, text)| text)
        .collect();
    assert_eq!(texts, [b"b", b"c", b"d"]);
}
