//! Spilling, with threads that record as fast as they can in place of a drive.

use std::os::fd::FromRawFd;

use super::*;
use crate::sample::{Sample, SampleLog};
use crate::testing::sleep_ms;

/// A sample that says of itself which it is.
fn sample(thread: usize, number: usize) -> Sample {
    let at = number as i64;
    Sample {
        due: at,
        free: at + 1,
        connect: -1,
        sent: at + 2,
        first_byte: at * 7 % 1_000_003,
        done: at * 11 % 1_000_003,
        request: number as u32,
        bytes: (number >> 3) as u32,
        host_low: 8,
        connection: thread as u16,
        outcome: (number % 11) as u8,
        host_high: 9,
    }
}

/// Records `counts` samples, a thread for each count, while `follower` follows.
fn record(recorded: &Arc<[Recorded]>, counts: &[usize], known: bool) -> Vec<Region> {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..counts.len())
            .map(|thread| {
                let count = counts[thread];
                scope.spawn(move || {
                    let mut log = SampleLog::new(known.then_some(count)).unwrap();
                    recorded[thread].place(log.region().mapping());
                    for number in 0..count {
                        assert!(log.push(sample(thread, number)));
                        if number % 64 == 0 {
                            recorded[thread].publish(log.len());
                        }
                        if number % 100_000 == 99_999 {
                            sleep_ms(20);
                        }
                    }
                    recorded[thread].publish(log.len());
                    log.into_region()
                })
            })
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    })
}

fn expected(counts: &[usize]) -> Vec<u8> {
    let mut whole = Region::reserve(0, counts.iter().sum::<usize>() * SAMPLE_BYTES).unwrap();
    for (thread, &count) in counts.iter().enumerate() {
        let mut log = SampleLog::new(Some(count)).unwrap();
        for number in 0..count {
            log.push(sample(thread, number));
        }
        whole.append(log.into_region().as_slice());
    }
    whole.as_slice().to_vec()
}

fn new_recorded(threads: usize) -> Arc<[Recorded]> {
    (0..threads).map(|_| Recorded::default()).collect()
}

/// Follows samples alone.
fn start(recorded: &Arc<[Recorded]>, folder: &Path, after_bytes: usize) -> Follower {
    let none = new_recorded(recorded.len());
    Follower::start(Arc::clone(recorded), none, folder, after_bytes, vec![]).unwrap()
}

#[test]
fn spilled_samples_are_the_same_byte_for_byte() {
    for (counts, known) in [
        (vec![500_001], true),
        (vec![400_000, 3, 250_777], false),
        (vec![10, 300_000], true),
    ] {
        let recorded = new_recorded(counts.len());
        let folder = std::env::temp_dir();
        let follower = start(&recorded, &folder, 0);
        let regions = record(&recorded, &counts, known);
        for _ in 0..2_000 {
            let gone = |thread: &Recorded| thread.given_back.load(SeqCst) > 0;
            if recorded.iter().any(gone) {
                break;
            }
            sleep_ms(5);
        }
        let mut spilled = follower.finish().unwrap().samples;
        assert_eq!(spilled.failed, None);
        assert!(spilled.prefixes.iter().any(|prefix| prefix.bytes > 0));
        let whole = gather(regions, Some(&mut spilled)).unwrap();
        assert!(whole.as_slice() == expected(&counts), "{counts:?}");
        whole.pass(whole.len());
        assert!(whole.as_slice() == expected(&counts), "read again");
    }
}

#[test]
fn nothing_is_spilled_below_the_threshold() {
    let counts = [30_000, 30_000];
    let recorded = new_recorded(2);
    let follower = start(&recorded, &std::env::temp_dir(), 60_000 * 64);
    let regions = record(&recorded, &counts, false);
    sleep_ms(150);
    let mut spilled = follower.finish().unwrap().samples;
    assert!(spilled.prefixes.iter().all(|prefix| prefix.bytes == 0));
    let whole = gather(regions, Some(&mut spilled)).unwrap();
    assert!(whole.as_slice() == expected(&counts));
}

/// A file that takes no more, as on a full disk.
fn full() -> File {
    File::options()
        .read(true)
        .write(true)
        .open("/dev/full")
        .unwrap()
}

#[test]
fn a_disk_that_is_full_from_the_start_loses_no_sample() {
    let counts = [100_000, 50_000];
    let recorded = new_recorded(2);
    let prefixes = (0..2)
        .map(|_| Prefix {
            file: full(),
            bytes: 0,
        })
        .collect();
    let mut follow = Follow::new(Arc::clone(&recorded), prefixes, 0, TOUCHED_BYTES);
    let regions = record(&recorded, &counts, true);
    follow.look();
    follow.look();
    let mut spilled = follow.spilled;
    let why = spilled.failed.clone().unwrap();
    assert!(why.contains("No space left"), "{why}");
    let whole = gather(regions, Some(&mut spilled)).unwrap();
    assert!(whole.as_slice() == expected(&counts));
}

/// A file that cannot grow beyond `bytes`, as on a disk that fills up.
fn room_for(bytes: usize) -> File {
    // SAFETY: plain calls; the descriptor is owned at once.
    unsafe {
        let fd = libc::memfd_create(c"spill".as_ptr(), libc::MFD_ALLOW_SEALING);
        assert!(fd >= 0);
        let file = File::from_raw_fd(fd);
        file.set_len(bytes as u64).unwrap();
        assert_eq!(libc::fcntl(fd, libc::F_ADD_SEALS, libc::F_SEAL_GROW), 0);
        file
    }
}

#[test]
fn a_disk_that_fills_up_loses_no_sample_whenever_it_does() {
    const MB: usize = 1 << 20;
    // While spilling, of one thread and of several; and only when all are gathered.
    for (counts, rooms) in [
        (vec![400_000], vec![10 * MB]),
        (vec![400_000, 200_000], vec![9 * MB, 30 * MB]),
        (vec![400_000, 200_000], vec![30 * MB, 5 * MB]),
        (vec![200_000, 200_000], vec![14 * MB, 30 * MB]),
        (vec![200_000, 200_000], vec![16 * MB, 30 * MB]),
    ] {
        let recorded = new_recorded(counts.len());
        let prefixes = rooms
            .iter()
            .map(|&room| Prefix {
                file: room_for(room),
                bytes: 0,
            })
            .collect();
        let mut follow = Follow::new(Arc::clone(&recorded), prefixes, 0, TOUCHED_BYTES);
        let regions = record(&recorded, &counts, true);
        for _ in 0..5 {
            follow.look();
        }
        let mut spilled = follow.spilled;
        assert!(spilled.prefixes.iter().any(|prefix| prefix.bytes > 0));
        let whole = gather(regions, Some(&mut spilled)).unwrap();
        assert!(
            whole.as_slice() == expected(&counts),
            "{counts:?} {rooms:?}"
        );
        assert!(spilled.failed.is_some(), "{counts:?} {rooms:?}");
    }
}

#[test]
fn the_most_recent_samples_can_be_read_at_any_time() {
    let recorded = new_recorded(1);
    let follower = start(&recorded, &std::env::temp_dir(), 0);
    let running = Arc::clone(&recorded);
    let thread = std::thread::spawn(move || record(&running, &[600_000], true).remove(0));
    let mut last = 0;
    let mut looks = 0;
    while last < 600_000 {
        let mut bytes = Vec::new();
        recorded[0].recent(&mut bytes);
        assert!(bytes.len() <= RECENT * SAMPLE_BYTES);
        let whole = bytes.chunks_exact(SAMPLE_BYTES);
        assert!(whole.remainder().is_empty());
        // SAFETY: the bytes were a Sample, and every bit pattern is one.
        let found: Vec<Sample> = whole
            .map(|bytes| unsafe { std::ptr::read_unaligned(bytes.as_ptr().cast()) })
            .collect();
        for s in &found {
            assert_eq!(*s, sample(0, s.request as usize));
        }
        assert!(
            found
                .windows(2)
                .all(|pair| pair[0].request + 1 == pair[1].request)
        );
        last = found.last().map_or(last, |s| s.request as usize + 1);
        looks += 1;
        sleep_ms(1);
    }
    assert!(looks > 1);
    thread.join().unwrap();
    drop(follower);
}

/// How many bytes of a mapping are in memory.
fn resident(mapping: &Mapping, bytes: usize) -> usize {
    let page = 4096;
    let mut pages = vec![0u8; bytes.div_ceil(page)];
    // SAFETY: the range lies in the mapping, and there is a byte for each of its pages.
    let asked = unsafe {
        let start = mapping.slice(0, bytes).as_ptr();
        libc::mincore(start.cast_mut().cast(), bytes, pages.as_mut_ptr())
    };
    assert_eq!(asked, 0);
    pages.iter().filter(|&&there| there & 1 == 1).count() * page
}

#[test]
fn memory_does_not_grow_with_what_is_recorded() {
    let recorded = new_recorded(1);
    let file = nameless(&std::env::temp_dir()).unwrap();
    let mut follow = Follow::new(
        Arc::clone(&recorded),
        vec![Prefix { file, bytes: 0 }],
        2 * KEEP_BYTES,
        TOUCHED_BYTES,
    );
    let mut log = SampleLog::new(None).unwrap();
    let mapping = Arc::clone(log.region().mapping());
    recorded[0].place(&mapping);
    // A look ten times a second, and 600,000 samples a second.
    for turn in 0..30 {
        for number in 0..60_000 {
            log.push(sample(0, turn * 60_000 + number));
        }
        recorded[0].publish(log.len());
        follow.look();
        let there = resident(&mapping, log.region().len() + 2 * TOUCHED_BYTES);
        let most = 2 * KEEP_BYTES + 60_000 * SAMPLE_BYTES + TOUCHED_BYTES + 2 * PAGES;
        assert!(there <= most, "{there} of {most} after turn {turn}");
        // The next turn finds its pages there: it takes no page faults.
        assert!(there >= TOUCHED_BYTES);
    }
    assert!(follow.spilled.prefixes[0].bytes > 100 << 20);
    let whole = gather(vec![log.into_region()], Some(&mut follow.spilled)).unwrap();
    assert!(whole.as_slice() == expected(&[30 * 60_000]));
}
