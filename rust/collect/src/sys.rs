//! What the standard library does not know: local time, the machine's name.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

#[cfg(test)]
thread_local! {
    /// Tests move the clock by it.
    static SET: std::cell::Cell<Option<Local>> = const { std::cell::Cell::new(None) };
}

/// Local time, to the minute.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Local {
    pub year: i32,
    pub month: i32,
    pub day: i32,
    pub hour: u32,
    pub minute: u32,
}

impl Local {
    pub fn now() -> Local {
        #[cfg(test)]
        if let Some(set) = SET.get() {
            return set;
        }
        Local::at(SystemTime::now())
    }

    /// What the clock shows from now on, in this thread.
    #[cfg(test)]
    pub fn set(date: (i32, i32, i32), hour: u32, minute: u32) {
        let (year, month, day) = date;
        SET.set(Some(Local {
            year,
            month,
            day,
            hour,
            minute,
        }));
    }

    pub fn at(when: SystemTime) -> Local {
        let seconds = when
            .duration_since(UNIX_EPOCH)
            .unwrap_or(Duration::ZERO)
            .as_secs();
        let seconds = seconds as libc::time_t;
        // SAFETY: a struct of integers and a pointer that is not read; both live through the call.
        let broken_down = unsafe {
            let mut broken_down: libc::tm = std::mem::zeroed();
            libc::localtime_r(&raw const seconds, &raw mut broken_down);
            broken_down
        };
        Local {
            year: broken_down.tm_year + 1900,
            month: broken_down.tm_mon + 1,
            day: broken_down.tm_mday,
            hour: broken_down.tm_hour as u32,
            minute: broken_down.tm_min as u32,
        }
    }

    /// `2026-11-22`.
    pub fn date(&self) -> String {
        format!("{}-{:02}-{:02}", self.year, self.month, self.day)
    }
}

pub fn unix_seconds() -> i64 {
    SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .map_or(0, |since| since.as_secs() as i64)
}

pub fn hostname() -> String {
    let read = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    read.trim().to_owned()
}

/// As many descriptors as the machine lets us have: every connection and every file needs one.
pub fn raise_descriptor_limit() {
    // SAFETY: the structure is valid and only ours.
    unsafe {
        let mut limit: libc::rlimit = std::mem::zeroed();
        if libc::getrlimit(libc::RLIMIT_NOFILE, &raw mut limit) == 0
            && limit.rlim_cur < limit.rlim_max
        {
            limit.rlim_cur = limit.rlim_max;
            libc::setrlimit(libc::RLIMIT_NOFILE, &raw const limit);
        }
    }
}

/// Held by each thread that others rely on: where one panics, the process ends, rather than
/// going on without it. What was acknowledged with `fsync` is kept, and clients go elsewhere.
pub struct EndsAll;

impl Drop for EndsAll {
    fn drop(&mut self) {
        if std::thread::panicking() {
            eprintln!("searchbench collect: a thread has failed, see above; please report it");
            std::process::abort();
        }
    }
}
