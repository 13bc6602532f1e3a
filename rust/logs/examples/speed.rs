//! What reading a log takes of one core, without Python: for a profile, or for one figure quickly.
//!
//!     cargo run --release -p searchbench-logs --example speed -- FILE [FORMAT] [READINGS] [THREADS]
//!
//! Processor time, not time that passed: others may use the machine. The best of the readings.

use searchbench_logs::format::Settings;
use searchbench_logs::source::Sizes;
use searchbench_logs::{Log, Options, Source, run};

/// Seconds of user and of system time of this process so far.
fn spent() -> (f64, f64) {
    // SAFETY: all zeros are a value of the structure, which the call then fills.
    let usage = unsafe {
        let mut usage: libc::rusage = std::mem::zeroed();
        libc::getrusage(libc::RUSAGE_SELF, &mut usage);
        usage
    };
    let seconds = |t: libc::timeval| t.tv_sec as f64 + t.tv_usec as f64 / 1e6;
    (seconds(usage.ru_utime), seconds(usage.ru_stime))
}

fn main() {
    let said: Vec<String> = std::env::args().skip(1).collect();
    let Some(path) = said.first() else {
        eprintln!("name a log: speed FILE [FORMAT] [READINGS] [THREADS]");
        std::process::exit(2);
    };
    let number = |at: usize, otherwise: usize| {
        said.get(at)
            .map_or(otherwise, |n| n.parse().unwrap_or(otherwise))
    };
    let source = Source {
        path: path.clone(),
        server: "s".to_owned(),
        format: said.get(1).cloned().unwrap_or_default(),
        ..Source::default()
    };
    let options = Options {
        settings: Settings {
            parameters: vec![b"q".to_vec()],
            ..Settings::default()
        },
        threads: number(3, 1),
        keep_tail: false,
        sizes: Sizes::default(),
    };
    let mut best = (f64::MAX, 0.0);
    let (mut lines, mut bytes) = (0, 0);
    for _ in 0..number(2, 5) {
        let mut log = Log::new(10_000_000);
        let before = spent();
        if let Err(why) = run::read(
            &mut log,
            std::slice::from_ref(&source),
            &options,
            &mut |_| true,
        ) {
            eprintln!("{why}");
            std::process::exit(1);
        }
        let after = spent();
        (lines, bytes) = (log.reads[0].seen.lines, log.reads[0].bytes);
        let (user, system) = (after.0 - before.0, after.1 - before.1);
        if user + system < best.0 + best.1 {
            best = (user, system);
        }
    }
    let (user, system) = best;
    let both = user + system;
    println!(
        "{lines} lines, {:.0} MB: {:.0} ns user + {:.0} ns system a line; {:.2} M lines/s and {:.0} MB/s \
         a core ({:.2} and {:.0} of user time alone)",
        bytes as f64 / 1e6,
        user / lines as f64 * 1e9,
        system / lines as f64 * 1e9,
        lines as f64 / both / 1e6,
        bytes as f64 / both / 1e6,
        lines as f64 / user / 1e6,
        bytes as f64 / user / 1e6,
    );
}
