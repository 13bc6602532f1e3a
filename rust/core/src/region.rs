//! Memory that grows without moving, and that others may read while it grows.
//!
//! An anonymous mapping reserved far beyond its need (NORESERVE: pages exist once touched), so
//! that appending never allocates, never copies, and never waits for another thread. What was
//! appended can be moved to a file and mapped back in its place, so it stays one piece.

use std::fs::File;
use std::io;
use std::os::fd::AsRawFd;
use std::sync::Arc;

/// Pages are given back in multiples of this, which is one of every page size that Linux has.
pub const PAGES: usize = 64 << 10;

/// A range of addresses with memory behind it; unmapped when the last owner drops it.
pub struct Mapping {
    base: *mut u8,
    bytes: usize,
}

// SAFETY: whoever reads a part sees to it that nobody writes to that part.
unsafe impl Send for Mapping {}
unsafe impl Sync for Mapping {}

impl Mapping {
    fn anonymous(bytes: usize) -> io::Result<Mapping> {
        // SAFETY: a fresh anonymous mapping at an address of the kernel's choice.
        let base = unsafe {
            libc::mmap(
                std::ptr::null_mut(),
                bytes,
                libc::PROT_READ | libc::PROT_WRITE,
                libc::MAP_PRIVATE | libc::MAP_ANONYMOUS | libc::MAP_NORESERVE,
                -1,
                0,
            )
        };
        if base == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(Mapping {
            base: base.cast(),
            bytes,
        })
    }

    /// Bytes from `from` to `to`.
    ///
    /// # Safety
    /// They were written, and nobody writes to them while the slice lives.
    pub unsafe fn slice(&self, from: usize, to: usize) -> &[u8] {
        debug_assert!(from <= to && to <= self.bytes);
        unsafe { std::slice::from_raw_parts(self.base.add(from), to - from) }
    }

    /// Touches pages beforehand, so that writing to them costs no page faults. Only whole
    /// `PAGES`; beyond the end there is nothing to touch.
    pub fn touch(&self, from: usize, to: usize) {
        let (from, to) = (from / PAGES * PAGES, to.min(self.bytes));
        if from < to {
            // SAFETY: within the mapping; contents stay. Where the kernel does not know the
            // advice nothing happens.
            unsafe {
                libc::madvise(
                    self.base.add(from).cast(),
                    to - from,
                    libc::MADV_POPULATE_WRITE,
                )
            };
        }
    }

    /// Gives memory back: what was anonymous reads as zeros from then on, what is a file's is
    /// read from it again. Only the whole `PAGES` within.
    ///
    /// # Safety
    /// Nobody needs what is there, or it is a file's.
    pub unsafe fn give_back(&self, from: usize, to: usize) {
        let from = from.next_multiple_of(PAGES);
        let to = to.min(self.bytes) / PAGES * PAGES;
        if from < to {
            unsafe { libc::madvise(self.base.add(from).cast(), to - from, libc::MADV_DONTNEED) };
        }
    }

    /// Puts the first `bytes` of a file in the place of the first of these, read only.
    ///
    /// # Safety
    /// Nobody reads or writes them meanwhile, nor writes to them afterwards.
    unsafe fn put(&self, file: &File, bytes: usize) -> io::Result<()> {
        assert!(bytes <= self.bytes && bytes.is_multiple_of(PAGES));
        let mapped = unsafe {
            libc::mmap(
                self.base.cast(),
                bytes,
                libc::PROT_READ,
                libc::MAP_SHARED | libc::MAP_FIXED,
                file.as_raw_fd(),
                0,
            )
        };
        if mapped == libc::MAP_FAILED {
            return Err(io::Error::last_os_error());
        }
        Ok(())
    }
}

impl Drop for Mapping {
    fn drop(&mut self) {
        // SAFETY: unmaps exactly what was mapped.
        unsafe { libc::munmap(self.base.cast(), self.bytes) };
    }
}

/// Bytes that can be appended to and never move.
pub struct Region {
    mapping: Arc<Mapping>,
    /// The mapping's own, at hand.
    base: *mut u8,
    reserved: usize,
    len: usize,
    /// The first bytes are a file's.
    filed: usize,
}

// SAFETY: only the region's owner writes to its mapping.
unsafe impl Send for Region {}
unsafe impl Sync for Region {}

impl Region {
    /// Reserves `wanted` bytes of addresses, or the largest power-of-two part of it that the
    /// machine grants, at least `least`.
    pub fn reserve(wanted: usize, least: usize) -> io::Result<Region> {
        let mut bytes = wanted.max(least).max(4096).next_multiple_of(4096);
        loop {
            let error = match Mapping::anonymous(bytes) {
                Ok(mapping) => return Ok(Region::over(mapping)),
                Err(error) => error,
            };
            if bytes / 2 < least.max(4096) {
                return Err(io::Error::new(
                    error.kind(),
                    format!(
                        "cannot reserve {bytes} bytes of address space for the trace: {error}; \
                         raise `ulimit -v` or vm.overcommit_memory, or record less"
                    ),
                ));
            }
            bytes = (bytes / 2).next_multiple_of(4096);
        }
    }

    /// The first `bytes` of a file, read only.
    pub fn of_file(file: &File, bytes: usize) -> io::Result<Region> {
        let mut region = Region::reserve(bytes.next_multiple_of(PAGES), bytes)?;
        // SAFETY: the mapping is fresh and nobody else knows it; what lies beyond the end of the
        // file is never read.
        unsafe { region.mapping.put(file, bytes.next_multiple_of(PAGES))? };
        region.len = bytes;
        region.filed = bytes;
        region.reserved = bytes;
        Ok(region)
    }

    fn over(mapping: Mapping) -> Region {
        Region {
            base: mapping.base,
            reserved: mapping.bytes,
            mapping: Arc::new(mapping),
            len: 0,
            filed: 0,
        }
    }

    /// The mapping, for those who read what is finished.
    pub fn mapping(&self) -> &Arc<Mapping> {
        &self.mapping
    }

    /// Puts the first `bytes` of a file, which are the same, in the place of the first of these.
    /// It can no longer be appended to.
    pub fn put(&mut self, file: &File, bytes: usize) -> io::Result<()> {
        assert!(bytes <= self.len);
        if bytes > 0 {
            // SAFETY: this has the only reference that reads or writes there.
            unsafe { self.mapping.put(file, bytes)? };
            self.filed = bytes;
        }
        self.reserved = self.len;
        Ok(())
    }

    /// Touches the first `bytes` beforehand.
    pub fn touch(&mut self, bytes: usize) {
        self.mapping.touch(0, bytes);
    }

    /// Room that is left, in bytes.
    pub fn room(&self) -> usize {
        self.reserved - self.len
    }

    pub fn len(&self) -> usize {
        self.len
    }

    pub fn as_slice(&self) -> &[u8] {
        // SAFETY: the first `len` bytes of the mapping were written by `append`.
        unsafe { std::slice::from_raw_parts(self.base, self.len) }
    }

    /// Appends, or says false where there is no room.
    #[inline]
    pub fn append(&mut self, bytes: &[u8]) -> bool {
        if bytes.len() > self.room() {
            return false;
        }
        // SAFETY: the room was checked, and `bytes` cannot lie in the unwritten part.
        unsafe {
            std::ptr::copy_nonoverlapping(bytes.as_ptr(), self.base.add(self.len), bytes.len());
        }
        self.len += bytes.len();
        true
    }

    /// Gives back the memory of bytes that are a file's, from the first up to `to`.
    pub fn pass(&self, to: usize) {
        // SAFETY: they are a file's.
        unsafe { self.mapping.give_back(0, to.min(self.filed)) };
    }

    /// Hands over piece after piece from `from` on, as long as `take` takes them, and gives each
    /// back. How many bytes were taken, and why no more were.
    pub fn drain<E>(
        &mut self,
        from: usize,
        mut take: impl FnMut(&[u8]) -> Result<(), E>,
    ) -> (usize, Result<(), E>) {
        let mut at = from;
        while at < self.len {
            let end = (at + DRAINED_BYTES).min(self.len);
            if let Err(error) = take(&self.as_slice()[at..end]) {
                return (at - from, Err(error));
            }
            // SAFETY: the region is the caller's alone, and this part has been taken.
            unsafe { self.mapping.give_back(at, end) };
            at = end;
        }
        (at - from, Ok(()))
    }
}

/// One piece of `drain`; a multiple of `PAGES`.
const DRAINED_BYTES: usize = 4 << 20;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_put_in_a_file_reads_the_same_in_its_place() {
        let mut region = Region::reserve(1 << 20, 1 << 20).unwrap();
        let bytes: Vec<u8> = (0..300_000u32).map(|n| (n * 7 % 251) as u8).collect();
        assert!(region.append(&bytes));
        let path = std::env::temp_dir().join(format!("searchbench-region-{}", std::process::id()));
        std::fs::write(&path, &bytes[..2 * PAGES]).unwrap();
        let file = File::open(&path).unwrap();
        std::fs::remove_file(&path).unwrap();
        // SAFETY: the file has them.
        unsafe { region.mapping().give_back(0, 2 * PAGES) };
        assert!(region.as_slice()[..2 * PAGES].iter().all(|&byte| byte == 0));
        region.put(&file, 2 * PAGES).unwrap();
        assert!(region.as_slice() == bytes);
        region.pass(usize::MAX);
        assert!(
            region.as_slice() == bytes,
            "what is passed can be read again"
        );
        assert!(!region.append(b"more"), "it is closed");
    }

    #[test]
    fn draining_gives_every_byte_once_and_says_where_it_stopped() {
        let mut region = Region::reserve(16 << 20, 16 << 20).unwrap();
        let bytes: Vec<u8> = (0..9_000_001u32).map(|n| (n % 253) as u8).collect();
        region.append(&bytes);
        let mut got = Vec::new();
        let (taken, why) = region.drain(PAGES, |piece| {
            if got.len() >= 4 << 20 {
                return Err("full");
            }
            got.extend_from_slice(piece);
            Ok(())
        });
        assert_eq!((taken, why), (4 << 20, Err("full")));
        let (rest, why) = region.drain(PAGES + taken, |piece| {
            got.extend_from_slice(piece);
            Ok::<(), ()>(())
        });
        assert_eq!(why, Ok(()));
        assert_eq!(PAGES + taken + rest, bytes.len());
        assert!(got == bytes[PAGES..]);
    }
}
