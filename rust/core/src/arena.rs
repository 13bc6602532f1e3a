//! Prepared requests: all bytes in one arena, and two tables of where things end.
//!
//! Nothing is built while the clock runs: a request is a run of exchanges, an exchange is a run
//! of bytes, and sending is handing a slice of the arena to the kernel.

use std::ops::Range;
use std::path::Path;

enum Bytes {
    Owned(Vec<u8>),
    Mapped(memmap2::Mmap),
}

/// Requests in the order of their indices.
pub struct Requests {
    bytes: Bytes,
    exchange_ends: Vec<u64>,
    request_ends: Vec<u32>,
    /// For each request, how many of its first exchanges are set-up and how many of its last are
    /// clean-up; neither is timed.
    untimed: Option<Vec<(u32, u32)>>,
}

impl Requests {
    /// Requests over bytes in memory. Err says which offset is wrong.
    pub fn new(
        arena: Vec<u8>,
        exchange_ends: Vec<u64>,
        request_ends: Vec<u32>,
    ) -> Result<Requests, String> {
        Requests {
            bytes: Bytes::Owned(arena),
            exchange_ends,
            request_ends,
            untimed: None,
        }
        .checked()
    }

    /// Requests over a file, which is mapped and must not be changed while they are in use.
    pub fn open(
        path: &Path,
        exchange_ends: Vec<u64>,
        request_ends: Vec<u32>,
    ) -> std::io::Result<Result<Requests, String>> {
        let file = std::fs::File::open(path)?;
        let bytes = if file.metadata()?.len() == 0 {
            Bytes::Owned(Vec::new())
        } else {
            // SAFETY: the file is the caller's own and is not shortened while it is driven.
            Bytes::Mapped(unsafe { memmap2::Mmap::map(&file)? })
        };
        Ok(Requests {
            bytes,
            exchange_ends,
            request_ends,
            untimed: None,
        }
        .checked())
    }

    fn checked(self) -> Result<Requests, String> {
        let arena = self.arena().len() as u64;
        let mut last = 0;
        for (index, &end) in self.exchange_ends.iter().enumerate() {
            if end <= last {
                return Err(format!(
                    "exchange {index} ends at {end}, but the one before it at {last}: the ends \
                     must increase, and an exchange has at least one byte"
                ));
            }
            if end > arena {
                return Err(format!(
                    "exchange {index} ends at {end}, beyond the arena of {arena} bytes"
                ));
            }
            last = end;
        }
        let mut last = 0;
        for (index, &end) in self.request_ends.iter().enumerate() {
            if end <= last {
                return Err(format!(
                    "request {index} ends at exchange {end}, but the one before it at {last}: \
                     the ends must increase, and a request has at least one exchange"
                ));
            }
            if end as usize > self.exchange_ends.len() {
                return Err(format!(
                    "request {index} ends at exchange {end}, but there are only {}",
                    self.exchange_ends.len()
                ));
            }
            last = end;
        }
        Ok(self)
    }

    /// The same as operations: each stops at its first failure and goes on with its clean-up.
    /// `before`, `after`: how many exchanges of each request are set-up, and how many clean-up.
    pub fn into_operations(
        mut self,
        before: Vec<u32>,
        after: Vec<u32>,
    ) -> Result<Requests, String> {
        let count = self.len();
        if before.len() != count || after.len() != count {
            return Err(format!(
                "before has {} entries and after {}, and there are {count} requests",
                before.len(),
                after.len()
            ));
        }
        let untimed: Vec<(u32, u32)> = before.into_iter().zip(after).collect();
        for (index, &(before, after)) in untimed.iter().enumerate() {
            let own = self.exchanges(index as u32).len() as u64;
            if u64::from(before) + u64::from(after) >= own {
                return Err(format!(
                    "request {index} has {own} exchanges, of which {before} come before and \
                     {after} after what is timed: at least one must be left"
                ));
            }
        }
        self.untimed = Some(untimed);
        Ok(self)
    }

    /// Which exchanges of a request are timed; None where it is no operation: all of them.
    #[inline]
    pub fn timed(&self, request: u32) -> Option<Range<u32>> {
        let (before, after) = self.untimed.as_ref()?[request as usize];
        let all = self.exchanges(request);
        Some(all.start + before..all.end - after)
    }

    pub fn len(&self) -> usize {
        self.request_ends.len()
    }

    pub fn is_empty(&self) -> bool {
        self.request_ends.is_empty()
    }

    /// Bytes of the longest exchange.
    pub fn longest(&self) -> usize {
        (0..self.exchange_ends.len() as u32)
            .map(|exchange| self.place(exchange).len())
            .max()
            .unwrap_or(0)
    }

    /// All bytes.
    #[inline]
    pub fn arena(&self) -> &[u8] {
        match &self.bytes {
            Bytes::Owned(bytes) => bytes,
            Bytes::Mapped(bytes) => bytes,
        }
    }

    /// The exchanges of a request.
    #[inline]
    pub fn exchanges(&self, request: u32) -> Range<u32> {
        let request = request as usize;
        let start = if request == 0 {
            0
        } else {
            self.request_ends[request - 1]
        };
        start..self.request_ends[request]
    }

    /// Where the bytes of an exchange lie in the arena.
    #[inline]
    pub fn place(&self, exchange: u32) -> Range<usize> {
        let exchange = exchange as usize;
        let start = if exchange == 0 {
            0
        } else {
            self.exchange_ends[exchange - 1]
        };
        start as usize..self.exchange_ends[exchange] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_a_run_of_exchanges_and_an_exchange_a_run_of_bytes() {
        let requests = Requests::new(b"helloworld!".to_vec(), vec![5, 10, 11], vec![2, 3]).unwrap();
        assert_eq!(requests.len(), 2);
        assert_eq!(requests.exchanges(0), 0..2);
        assert_eq!(requests.exchanges(1), 2..3);
        assert_eq!(&requests.arena()[requests.place(1)], b"world");
        assert_eq!(requests.longest(), 5);
    }

    #[test]
    fn an_operation_has_set_up_and_clean_up_around_what_is_timed() {
        let make = |before, after| {
            Requests::new(b"hello".to_vec(), vec![1, 2, 3, 5], vec![1, 4])
                .unwrap()
                .into_operations(before, after)
        };
        let requests = make(vec![0, 1], vec![0, 1]).unwrap();
        assert_eq!(requests.timed(0), Some(0..1));
        assert_eq!(requests.timed(1), Some(2..3));
        let why = |before, after| make(before, after).err().unwrap();
        assert!(why(vec![0, 2], vec![0, 1]).contains("request 1 has 3 exchanges"));
        assert!(why(vec![0], vec![0]).contains("there are 2 requests"));
    }

    #[test]
    fn offsets_out_of_order_or_out_of_range_are_named() {
        let wrong = |exchanges: Vec<u64>, requests: Vec<u32>| {
            Requests::new(b"hello".to_vec(), exchanges, requests)
                .err()
                .unwrap()
        };
        assert!(wrong(vec![3, 2], vec![1, 2]).contains("exchange 1 ends at 2"));
        assert!(wrong(vec![3, 6], vec![1, 2]).contains("beyond the arena"));
        assert!(wrong(vec![0, 3], vec![1]).contains("at least one byte"));
        assert!(wrong(vec![5], vec![1, 1]).contains("at least one exchange"));
        assert!(wrong(vec![5], vec![2]).contains("only 1"));
    }

    #[test]
    fn a_file_is_mapped_and_reads_the_same() {
        let path = std::env::temp_dir().join(format!("searchbench-arena-{}", std::process::id()));
        std::fs::write(&path, b"abc").unwrap();
        let requests = Requests::open(&path, vec![1, 3], vec![2]).unwrap().unwrap();
        assert_eq!(&requests.arena()[requests.place(1)], b"bc");
        std::fs::remove_file(&path).unwrap();
        assert!(Requests::open(&path, vec![], vec![]).is_err());
    }
}
