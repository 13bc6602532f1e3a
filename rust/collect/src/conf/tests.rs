//! Configurations as people have them, and as they get them wrong.

use std::path::Path;
use std::time::Duration;

use super::{Hash, Kind, Mistake, Pattern, Period, Retry, Settings, read};

/// Every example of Scribe's own page, one after another, without its last line, which is stray.
const OF_THE_PAGE: &str = include_str!("of_the_page.conf");

fn right(text: &str) -> Settings {
    let (settings, mistakes) = read(text);
    let fatal: Vec<_> = mistakes.iter().filter(|mistake| mistake.fatal).collect();
    assert!(fatal.is_empty(), "{fatal:?}");
    settings
}

/// The only mistake of a text.
fn mistake(text: &str) -> Mistake {
    let (_, mistakes) = read(text);
    assert_eq!(mistakes.len(), 1, "{mistakes:?}");
    mistakes.into_iter().next().unwrap()
}

fn in_store(lines: &str) -> String {
    format!("<store>\ncategory=a\n{lines}\n</store>\n")
}

#[test]
fn the_examples_of_the_page_are_right() {
    let settings = right(OF_THE_PAGE);
    assert_eq!(
        (settings.port, settings.max_msg_per_second),
        (1463, 2_000_000)
    );
    assert_eq!(settings.max_queue_bytes, 10_000_000);
    assert_eq!(settings.check_interval, Duration::from_secs(3));
    let [
        statistics,
        sprockets,
        network,
        buffer,
        bucket,
        null,
        multi,
        thrift,
    ] = &settings.stores[..]
    else {
        panic!("{} stores", settings.stores.len())
    };
    assert_eq!(statistics.target_write_bytes, 20480);
    assert_eq!(statistics.max_write_interval, Duration::from_secs(2));
    let Kind::File(files) = &sprockets.store else {
        panic!()
    };
    assert_eq!(
        (files.period, files.rotate_hour, files.rotate_minute),
        (Period::Daily, 0, 10)
    );
    assert_eq!((files.max_bytes, files.add_newlines), (1_000_000, true));
    let Kind::Network(one) = &network.store else {
        panic!()
    };
    assert_eq!(one.servers, [("hal".to_owned(), 1465)]);
    assert_eq!(network.categories, [Pattern::Default]);
    let Kind::Buffer(one) = &buffer.store else {
        panic!()
    };
    assert_eq!(
        one.retry,
        Retry::Around {
            interval: 30,
            range: 10
        }
    );
    let Kind::Bucket(one) = &bucket.store else {
        panic!()
    };
    assert_eq!(
        (one.hash, one.delimiter, one.stores.len()),
        (Hash::Key, b':', 6)
    );
    let Kind::File(last) = &one.stores[5] else {
        panic!()
    };
    assert_eq!(last.path, Path::new("/tmp/scribetest/bucket005"));
    assert_eq!(null.categories, [Pattern::Prefix("tps_report".into())]);
    let Kind::Multi(one) = &multi.store else {
        panic!()
    };
    assert_eq!((one.all, one.stores.len()), (true, 2));
    let Kind::ThriftFile(_, events) = &thrift.store else {
        panic!()
    };
    assert_eq!(events.flush_every, Duration::from_secs(2));
}

#[test]
fn the_stray_line_of_the_page_is_a_store_that_is_never_closed() {
    let (_, mistakes) = read(&format!("{OF_THE_PAGE}<store>\n"));
    let said: Vec<_> = mistakes.iter().map(|m| m.what.as_str()).collect();
    assert_eq!(said[0], "<store> is never closed");
}

#[test]
fn a_key_that_is_misspelt_gets_the_nearest_one() {
    let wrong = mistake(&in_store("type=file\nrotate_perid=daily"));
    assert_eq!((wrong.line, wrong.key.as_str()), (4, "rotate_perid"));
    assert_eq!(wrong.hint, "did you mean rotate_period?");
    assert!(wrong.fatal);
    let wrong = mistake(&format!("max_msgs_per_second=5\n{}", in_store("type=null")));
    assert_eq!(
        (wrong.line, wrong.hint.as_str()),
        (1, "did you mean max_msg_per_second?")
    );
}

#[test]
fn a_type_that_is_misspelt_gets_the_nearest_one() {
    let wrong = mistake(&in_store("type=thrift_file"));
    assert_eq!(
        (wrong.line, wrong.hint.as_str()),
        (3, "did you mean thriftfile?")
    );
}

/// Line and hint of each mistake.
fn told(text: &str) -> Vec<(u32, String)> {
    let mistakes = read(text).1.into_iter();
    mistakes.map(|m| (m.line, m.hint)).collect()
}

#[test]
fn a_store_whose_type_is_misspelt_has_its_other_mistakes_told_too() {
    let typos = "max_sise=5\nrotate_perid=daily\nmax_write_size=1MB";
    for (line, hint) in [
        ("typ=file", "did you mean type?"),
        ("Type=file", "did you mean type?"),
        ("type=flie", "did you mean file?"),
    ] {
        let expected = [
            (3, hint),
            (4, "did you mean max_size?"),
            (5, "did you mean rotate_period?"),
            (6, "write max_write_size=1 if that is meant"),
        ]
        .map(|(line, hint)| (line, hint.to_owned()));
        assert_eq!(told(&in_store(&format!("{line}\n{typos}"))), expected);
    }
    // Both at once, and in blocks inside of another.
    let inside = "tpye=buffr\n<primary>\ntyp=network\nremote_host=a\nremote_port=1\ntimeuot=5\n\
                  </primary>\n<secondary>\ntype=fiel\nmax_sise=5\n</secondary>";
    let said = told(&in_store(inside));
    let lines: Vec<_> = said.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [3, 3, 5, 8, 11, 12], "{said:?}");
}

#[test]
fn a_store_without_a_type_has_keys_told_that_no_store_has() {
    let text = "<store>\ncategory=a\nmax_sise=5\nremote_host=a\nxyzzy=1\n<primary>\n\
                type=file\nmax_siez=1\n</primary>\n</store>\n";
    let said: Vec<_> = told(text);
    let lines: Vec<_> = said.iter().map(|(line, _)| *line).collect();
    assert_eq!(lines, [1, 3, 5, 8], "{said:?}");
    assert!(said[0].1.starts_with("write type= and one of file"));
    assert_eq!(said[2].1, "leave it out: no type of store has it");
}

#[test]
fn values_that_scribe_reads_otherwise_are_mistakes() {
    for (line, says) in [
        ("rotate_minute=08", "octal"),
        ("max_size=10MB", "reads 10"),
        ("create_symlink=true", "reads this as no"),
        ("write_meta=1", "reads this as no"),
        ("must_succeed=false", "reads this as yes"),
        ("add_newlines=yes", "whole number"),
        ("rotate_period=weekly", "never"),
        ("rotate_hour=24", "from 0 to 23"),
    ] {
        let wrong = mistake(&in_store(&format!("type=file\n{line}")));
        assert!(
            wrong.what.contains(says) && wrong.line == 4,
            "{line}: {wrong:?}"
        );
    }
}

/// A buffer with these keys of its own.
fn in_buffer(lines: &str) -> String {
    in_store(&format!(
        "type=buffer\n{lines}\n<primary>\ntype=network\nremote_host=a\nremote_port=1\n</primary>\n\
         <secondary>\ntype=file\n</secondary>"
    ))
}

#[test]
fn values_of_a_buffer_that_scribe_does_not_take_are_mistakes() {
    for (lines, says) in [
        ("buffer_bypass_max_ratio=0", "above 0 and up to 1"),
        ("buffer_bypass_max_ratio=1.5", "scribed takes 0.75"),
        ("buffer_bypass_max_ratio=most", "above 0 and up to 1"),
        (
            "min_retry_interval=200\nadaptive_backoff=yes",
            "above max_retry_interval 100",
        ),
        (
            "max_retry_interval=2\nadaptive_backoff=yes",
            "scribed takes 5 and 100",
        ),
    ] {
        let wrong = mistake(&in_buffer(lines));
        assert!(
            wrong.fatal && wrong.what.contains(says) && wrong.line == 4,
            "{lines}: {wrong:?}"
        );
    }
    let settings = right(&in_buffer(
        "adaptive_backoff=yes\nbuffer_bypass_max_ratio=1",
    ));
    let Kind::Buffer(buffer) = &settings.stores[0].store else {
        panic!()
    };
    let expected = Retry::Adaptive {
        least: 5,
        most: 100,
        random: 20,
    };
    assert_eq!(buffer.retry, expected);
}

#[test]
fn a_range_of_keys_needs_its_length() {
    let text = in_store(
        "type=bucket\nnum_buckets=2\nbucket_type=key_range\nbucket_subdir=b\n<bucket>\ntype=file\n\
         file_path=/a\n</bucket>",
    );
    let wrong = mistake(&text);
    assert!(wrong.fatal && wrong.key == "bucket_range", "{wrong:?}");
}

#[test]
fn servers_that_would_be_looked_up_are_refused_one_by_one() {
    for (key, _) in super::keys::REFUSED {
        let wrong = mistake(&in_store(&format!(
            "type=network\nremote_host=a\nremote_port=1\n{key}=x"
        )));
        assert!(wrong.fatal && wrong.line == 6, "{wrong:?}");
        assert_eq!(wrong.what, format!("{key} is not supported"));
        assert!(!wrong.hint.is_empty());
    }
    let wrong = mistake(&in_store("type=network\nservice_list=a b:1"));
    assert!(
        wrong.fatal && wrong.hint.contains("list_default_port"),
        "{wrong:?}"
    );
}

#[test]
fn what_another_store_has_is_said_and_is_no_mistake() {
    let noted = mistake(&in_store("type=null\nmax_size=5"));
    assert!(
        !noted.fatal && noted.what.contains("no effect here"),
        "{noted:?}"
    );
}

#[test]
fn what_is_not_supported_says_what_to_write() {
    let wrong = mistake(&in_store(
        "type=network\nremote_host=a\nremote_port=1\nsmc_service=x",
    ));
    assert!(
        wrong.fatal && wrong.hint.contains("service_list"),
        "{wrong:?}"
    );
    let wrong = mistake(&in_store("type=file\nfs_type=hdfs"));
    assert_eq!((wrong.line, wrong.key.as_str()), (4, "fs_type"));
}

#[test]
fn a_key_of_a_type_is_found_in_what_is_around() {
    let text = format!(
        "file::max_size=7\n{}{}",
        in_store("type=file\nfile::chunk_size=9"),
        { "<store>\ncategory=b\ntype=file\nmax_size=8\n</store>\n" }
    );
    let sizes: Vec<_> = right(&text)
        .stores
        .iter()
        .map(|store| match &store.store {
            Kind::File(files) => (files.max_bytes, files.chunk_bytes),
            _ => panic!(),
        })
        .collect();
    assert_eq!(sizes, [(7, 9), (8, 0)]);
}

#[test]
fn remarks_spaces_and_line_ends_of_windows_are_no_part_of_a_value() {
    let text = "port = 0x10 # hex\r\n<store>\r\n\tcategory=a # b\r\ntype=null\r\n</store>\r\n";
    assert_eq!(right(text).port, 16);
}

#[test]
fn blocks_are_closed_by_their_own_names() {
    for (text, says) in [
        (
            "<store>\ncategory=a\ntype=null\n</stoer>\n",
            "closes <store> of line 1",
        ),
        (
            "<store>\ncategory=a\ntype=null\n</store>\n</store>\n",
            "not open",
        ),
        (
            "<store>\ncategory=a\ntype=null\nhello\n</store>\n",
            "neither",
        ),
        ("port=1\n", "no <store>"),
    ] {
        let wrong = mistake(text);
        assert!(wrong.what.contains(says), "{wrong:?}");
    }
}

#[test]
fn names_cannot_lead_out_of_their_folder() {
    for name in ["../x", "a/b", ".hidden"] {
        let (_, mistakes) = read(&format!("<store>\ncategory={name}\ntype=null\n</store>\n"));
        assert!(
            mistakes.iter().any(|m| m.key == "category" && m.line == 2),
            "{name}"
        );
    }
}

#[test]
fn two_stores_do_not_have_the_same_buffered_files() {
    let buffered = |category: &str, port: u32, folder: &str| {
        format!(
            "<store>\ncategory={category}\ntype=buffer\n<primary>\ntype=network\nremote_host=a\n\
             remote_port={port}\n</primary>\n<secondary>\ntype=file\nfile_path={folder}\n\
             </secondary>\n</store>\n"
        )
    };
    let twice = buffered("web", 1, "/spool") + &buffered("web", 2, "/spool");
    let found = mistake(&twice);
    assert!(found.fatal);
    assert_eq!(found.line, 14);
    assert!(found.what.contains("/spool/web"), "{}", found.what);
    for category in ["default", "web*"] {
        mistake(&(buffered(category, 1, "/spool") + &buffered(category, 2, "/spool")));
    }
    let file = |category: &str, more: &str| {
        format!("<store>\ncategory={category}\ntype=file\nfile_path=/logs\n{more}\n</store>\n")
    };
    right(&(file("a", "base_filename=all") + &file("b", "base_filename=all")));
    // Of two categories, in two folders, under two names: each has its own.
    right(&(buffered("web", 1, "/spool") + &buffered("shop", 2, "/spool")));
    right(&(buffered("web", 1, "/spool") + &buffered("web", 2, "/spool2")));
    right(&(file("a", "") + &file("b", "") + &file("default", "") + &file("w*", "")));
    right(&(file("a", "base_filename=x") + &file("a", "base_filename=y")));
}

#[test]
fn blocks_within_blocks_without_end_are_refused() {
    for block in [
        "<a>\n",
        "<store>\ncategory=a\ntype=multi\n<store0>\ntype=multi\n",
    ] {
        let (_, mistakes) = read(&block.repeat(200_000));
        let deep = |mistake: &&Mistake| mistake.what.contains("other blocks; no more is read");
        assert_eq!(mistakes.iter().filter(deep).count(), 1, "{block:?}");
        assert!(mistakes.len() < 200, "{}", mistakes.len());
    }
}

#[test]
fn a_number_of_a_bucket_that_would_be_too_large_is_refused() {
    let found = mistake(&in_store(&format!(
        "type=bucket\nnum_buckets=1\nbucket_type=random\nbucket_subdir=b\nbucket_offset={}\n\
         <bucket>\ntype=file\nfile_path=/tmp/x\n</bucket>",
        u64::MAX
    )));
    assert_eq!((&*found.key, found.fatal), ("bucket_offset", true));
}

#[test]
fn buckets_of_buckets_are_refused_before_they_are_made() {
    let head = "type=bucket\nnum_buckets=100000\nbucket_type=random\nbucket_subdir=b\n<bucket>\n";
    let text = format!(
        "{}type=file\nfile_path=/tmp/x\n{}",
        head.repeat(3),
        "</bucket>\n".repeat(3)
    );
    let (settings, mistakes) = read(&in_store(&text));
    let told = mistakes
        .iter()
        .filter(|m| m.what.contains("for all is a file"));
    assert_eq!(
        (told.count(), settings.stores.len()),
        (1, 0),
        "{mistakes:?}"
    );
}

#[test]
fn a_key_that_is_very_long_is_like_no_other() {
    let line = format!("{}=1\n", "max_size".repeat(1 << 17));
    let (_, mistakes) = read(&line.repeat(3));
    let unknown = |mistake: &&Mistake| mistake.what.starts_with("there is no key");
    assert_eq!(mistakes.iter().filter(unknown).count(), 3);
}
