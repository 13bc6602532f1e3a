//! One reader and its inputs: how many, how long, and what is said where one is not survived.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread;
use std::time::{Duration, Instant};

use crate::memory;
use crate::random::Random;

/// An input that is still being read after this, on however busy a machine, is read for ever.
const FOREVER: Duration = Duration::from_secs(120);
/// How often it is said how far a target is.
const TOLD_EVERY: Duration = Duration::from_secs(60);

pub struct Target {
    /// That of its test, by which `make fuzz TARGET=` finds it.
    pub name: &'static str,
    /// How many inputs it is given where nobody says how many.
    pub inputs: u64,
    /// No input may take more memory at once.
    pub most_bytes: usize,
}

fn said(name: &str) -> Option<u64> {
    let text = std::env::var(name).ok()?;
    Some(
        text.parse()
            .unwrap_or_else(|_| panic!("{name} is {text:?}, not a number")),
    )
}

/// Says which input it was, if one ends the test.
struct Under<'a> {
    name: &'a str,
    sequence: u64,
    input: Cell<u64>,
}

impl Drop for Under<'_> {
    fn drop(&mut self) {
        if thread::panicking() {
            eprintln!("{}", again(self.name, self.sequence, self.input.get()));
        }
    }
}

fn again(name: &str, sequence: u64, input: u64) -> String {
    format!(
        "{name}: this was input {input}; again with SEARCHBENCH_FUZZ=1 SEARCHBENCH_FUZZ_FROM={input} \
         SEARCHBENCH_FUZZ_SEED={sequence}"
    )
}

impl Target {
    /// Gives it its inputs, each drawn from numbers of its own. `check` is true where the input was
    /// understood; some must be, or the seeds are not near enough to what is read.
    pub fn run(&self, mut check: impl FnMut(&mut Random) -> bool) {
        let inputs = said("SEARCHBENCH_FUZZ").unwrap_or(self.inputs);
        let first = said("SEARCHBENCH_FUZZ_FROM").unwrap_or(0);
        let sequence = said("SEARCHBENCH_FUZZ_SEED").unwrap_or(1);
        let seconds = said("SEARCHBENCH_FUZZ_S").map(Duration::from_secs);
        let begun = Instant::now();
        let under = Under {
            name: self.name,
            sequence,
            input: Cell::new(first),
        };
        let at = Arc::new(AtomicU64::new(first));
        let (over, is_over) = mpsc::channel::<()>();
        let watch = {
            let (name, at) = (self.name, at.clone());
            thread::spawn(move || watch(name, sequence, first, &at, &is_over))
        };
        let (mut done, mut understood, mut most) = (0, 0u64, 0);
        while done < inputs {
            let input = first + done;
            under.input.set(input);
            at.store(input, Ordering::Relaxed);
            let before = memory::begin();
            understood += u64::from(check(&mut Random::of(sequence, input)));
            most = most.max(memory::most_since(before));
            assert!(
                most <= self.most_bytes,
                "{}: an input took {most} bytes of memory, and {} are enough",
                self.name,
                self.most_bytes
            );
            done += 1;
            if done.is_multiple_of(1024) && seconds.is_some_and(|limit| begun.elapsed() >= limit) {
                break;
            }
        }
        drop(over);
        watch.join().expect("the watch ends");
        let took = begun.elapsed().as_secs_f64();
        eprintln!(
            "\nfuzz {}: {done} inputs in {took:.1} s ({:.0} a second), {understood} understood, at most \
             {most} bytes of memory",
            self.name,
            done as f64 / took
        );
        assert!(
            done < 1000 || understood > done / 100,
            "{}: {understood} of {done} were understood: the seeds are not near enough",
            self.name
        );
    }
}

/// Says how far it is, and ends the process where one input is read for ever: nothing else could.
fn watch(name: &str, sequence: u64, first: u64, at: &AtomicU64, is_over: &mpsc::Receiver<()>) {
    let (mut seen, mut still) = (first, Duration::ZERO);
    while is_over.recv_timeout(TOLD_EVERY) == Err(RecvTimeoutError::Timeout) {
        let now = at.load(Ordering::Relaxed);
        still = if now == seen {
            still + TOLD_EVERY
        } else {
            Duration::ZERO
        };
        if still >= FOREVER {
            eprintln!(
                "still read after {FOREVER:?}; {}",
                again(name, sequence, now)
            );
            std::process::abort();
        }
        eprintln!("\nfuzz {name}: {} inputs so far", now - first);
        seen = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TARGET: Target = Target {
        name: "a test",
        inputs: 2000,
        most_bytes: 1 << 16,
    };

    #[test]
    fn every_input_is_given() {
        let mut given = 0;
        TARGET.run(|_| {
            given += 1;
            true
        });
        assert!(given > 0);
    }

    #[test]
    #[should_panic(expected = "an input took")]
    fn an_input_that_takes_much_memory_is_found() {
        TARGET.run(|random| {
            let bytes = if random.once_in(100) { 1 << 20 } else { 10 };
            std::hint::black_box(Vec::<u8>::with_capacity(bytes));
            true
        });
    }

    #[test]
    #[should_panic(expected = "the seeds are not near enough")]
    fn inputs_that_are_never_understood_are_found() {
        TARGET.run(|_| false);
    }
}
