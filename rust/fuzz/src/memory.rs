//! How much memory an input takes: an allocator that counts, each thread for itself.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;

thread_local! {
    /// Bytes that this thread has and did not give back (others may: it can be negative), and the most
    /// since `begin`.
    static HELD: Cell<isize> = const { Cell::new(0) };
    static MOST: Cell<isize> = const { Cell::new(0) };
}

/// The system's allocator, counted. Tests install it: `#[global_allocator] static M: Meter = Meter;`
pub struct Meter;

fn count(bytes: isize) {
    // Neither has a destructor, so both are there as long as their thread is.
    let held = HELD.get() + bytes;
    HELD.set(held);
    if held > MOST.get() {
        MOST.set(held);
    }
}

// SAFETY: every call is passed on to the system's allocator as it is.
unsafe impl GlobalAlloc for Meter {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc(layout) }
    }

    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        count(layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.alloc_zeroed(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        count(-(layout.size() as isize));
        // SAFETY: as the caller promises.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        count(size as isize - layout.size() as isize);
        // SAFETY: as the caller promises.
        unsafe { System.realloc(at, layout, size) }
    }
}

/// What this thread has before something is done.
pub(crate) fn begin() -> isize {
    let held = HELD.get();
    MOST.set(held);
    held
}

/// The most that it had meanwhile, beyond what it had before.
pub(crate) fn most_since(before: isize) -> usize {
    (MOST.get() - before).max(0) as usize
}

#[cfg(test)]
mod tests {
    use super::*;

    #[global_allocator]
    static METER: Meter = Meter;

    #[test]
    fn the_most_is_counted_though_it_is_given_back() {
        let before = begin();
        let large = std::hint::black_box(vec![1u8; 1 << 20]);
        drop(large);
        let mut grown = std::hint::black_box(Vec::<u8>::new());
        for byte in 0..1000 {
            grown.push(byte as u8);
        }
        let most = most_since(before);
        assert!((1 << 20..(1 << 20) + 1000).contains(&most), "{most}");
    }
}
