//! What it costs to record a sample: prints nanoseconds a sample, median of nine logs.
//!
//! Each log takes a million samples into fresh memory, page faults included, as a drive's does;
//! the samples are made of numbers that the compiler cannot foresee.

use std::hint::black_box;
use std::time::Instant;

use searchbench_core::{Sample, SampleLog};

const SAMPLES: usize = 1_000_000;
const LOGS: usize = 9;

fn main() -> std::io::Result<()> {
    let mut each_ns = Vec::with_capacity(LOGS);
    for _ in 0..LOGS {
        let mut log = SampleLog::new(Some(SAMPLES))?;
        let began = Instant::now();
        for n in 0..SAMPLES as i64 {
            let at = black_box(n);
            let sample = Sample {
                due: at,
                free: at,
                connect: -1,
                sent: at + 1,
                first_byte: at + 2,
                done: at + 3,
                request: at as u32,
                bytes: 100,
                host_low: 5,
                connection: 1,
                outcome: 0,
                host_high: 0,
            };
            assert!(log.push(sample), "no room for a sample");
        }
        each_ns.push(began.elapsed().as_nanos() as f64 / SAMPLES as f64);
        black_box(log.len());
    }
    each_ns.sort_by(f64::total_cmp);
    println!("{:.2} ns a sample", each_ns[LOGS / 2]);
    Ok(())
}
