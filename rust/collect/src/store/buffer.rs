//! Store `buffer`: to the primary, and while that does not take them to files, which are sent to it
//! later, whole and in order.

use std::time::{Duration, Instant};

use super::{Purpose, Spool, Store, build};
use crate::batch::Batch;
use crate::conf::{self, Kind, Retry};
use crate::counters::add;

enum State {
    /// Straight to the primary.
    Streaming,
    /// To the secondary, until the primary is tried again.
    Disconnected(Instant),
    /// The primary takes what was buffered, and what comes goes behind it.
    Sending,
}

enum Secondary {
    Files(Spool),
    Other(Box<dyn Store>),
}

pub struct Buffered {
    conf: conf::Buffer,
    purpose: Purpose,
    primary: Box<dyn Store>,
    secondary: Secondary,
    state: Option<State>,
    /// Seconds, of the adaptive retry.
    adaptive: f64,
    trouble: Option<String>,
}

impl Buffered {
    pub fn new(conf: &conf::Buffer, purpose: &Purpose) -> Buffered {
        let secondary = match &conf.secondary {
            Kind::File(files) if conf.replay => {
                let (folder, base) = purpose.place(files);
                let Purpose {
                    category,
                    shared,
                    fsync,
                    ..
                } = purpose;
                let most = files.max_bytes;
                Secondary::Files(Spool::new(folder, base, category, *shared, most, *fsync))
            }
            other => Secondary::Other(build(other, purpose)),
        };
        let least = match conf.retry {
            Retry::Adaptive { least, .. } => least,
            Retry::Around { .. } => 0,
        };
        Buffered {
            conf: conf.clone(),
            purpose: purpose.clone(),
            primary: build(&conf.primary, purpose),
            secondary,
            state: None,
            adaptive: least as f64,
            trouble: None,
        }
    }

    /// The primary has taken something: it is trusted again, a little.
    fn succeeded(&mut self) {
        if let Retry::Adaptive { least, .. } = self.conf.retry {
            self.adaptive = (self.adaptive - 2.0).max(least as f64);
        }
    }

    /// How long the primary is left alone.
    pub(super) fn pause(&mut self) -> Duration {
        let seconds = match self.conf.retry {
            Retry::Around { interval, range } => {
                (interval as f64 + (fastrand::f64() - 0.5) * range as f64).max(0.0)
            }
            Retry::Adaptive {
                least,
                most,
                random,
            } => {
                let longer = self.adaptive * 1.414 + fastrand::f64() * random as f64;
                self.adaptive = longer.clamp(least as f64, most as f64);
                self.adaptive
            }
        };
        Duration::from_secs_f64(seconds)
    }

    fn disconnect(&mut self, why: String) {
        add(&self.purpose.counts.retries, 1);
        self.trouble = Some(why);
        self.primary.close();
        let pause = self.pause();
        self.state = Some(State::Disconnected(Instant::now() + pause));
    }

    /// The state; at first, whether the primary is there.
    fn state(&mut self) -> &State {
        if self.state.is_none() {
            match self.primary.ready() {
                Ok(()) => self.connected(),
                Err(why) => self.disconnect(why),
            }
        }
        self.state.as_ref().expect("set above")
    }

    fn connected(&mut self) {
        let nothing = match &mut self.secondary {
            Secondary::Files(spool) => spool.is_empty().unwrap_or(false),
            Secondary::Other(_) => true,
        };
        self.trouble = None;
        self.state = Some(if nothing {
            State::Streaming
        } else {
            State::Sending
        });
    }

    fn give_primary(&mut self, batch: &mut Batch) -> Result<(), String> {
        if let Err(why) = self.primary.keep(batch) {
            self.primary.forget();
            self.disconnect(why);
            return self.give_secondary(batch);
        }
        self.succeeded();
        Ok(())
    }

    fn give_secondary(&mut self, batch: &mut Batch) -> Result<(), String> {
        let done = match &mut self.secondary {
            Secondary::Files(spool) => spool.append(batch),
            Secondary::Other(store) => store.keep(batch),
        };
        if let Err(why) = &done {
            self.trouble = Some(why.clone());
        }
        done
    }

    /// Sends the oldest buffered file; false where there is none.
    fn replay(&mut self) -> Result<bool, String> {
        let Secondary::Files(spool) = &mut self.secondary else {
            return Ok(false);
        };
        let Some(mut file) = spool.oldest()? else {
            return Ok(false);
        };
        add(&self.purpose.counts.bytes_lost, file.torn);
        let whole = file.messages.len();
        if let Err(why) = self.primary.keep(&mut file.messages) {
            self.primary.forget();
            if file.messages.len() < whole || file.torn > 0 {
                spool.replace(file.number, &file.messages)?;
            }
            return Err(why);
        }
        spool.remove(file.number)?;
        self.succeeded();
        Ok(true)
    }
}

impl Store for Buffered {
    fn keep(&mut self, batch: &mut Batch) -> Result<(), String> {
        let flush = self.conf.flush_streaming;
        match self.state() {
            State::Streaming => self.give_primary(batch),
            State::Sending if flush => self.give_primary(batch),
            State::Sending | State::Disconnected(_) => self.give_secondary(batch),
        }
    }

    fn forget(&mut self) {
        if let Secondary::Other(store) = &mut self.secondary {
            store.forget();
        }
    }

    fn ready(&mut self) -> Result<(), String> {
        self.state();
        Ok(())
    }

    fn check(&mut self, full: f64) {
        self.primary.check(full);
        if let Secondary::Other(store) = &mut self.secondary {
            store.check(full);
        }
        if let State::Disconnected(until) = self.state() {
            if Instant::now() < *until {
                return;
            }
            match self.primary.ready() {
                Ok(()) => self.connected(),
                Err(why) => self.disconnect(why),
            }
        }
        if !matches!(self.state, Some(State::Sending)) {
            return;
        }
        for _ in 0..self.conf.send_rate {
            if self.conf.flush_streaming && full >= self.conf.bypass_max_ratio {
                return;
            }
            match self.replay() {
                Ok(true) => {}
                Ok(false) => return self.connected(),
                Err(why) => return self.disconnect(why),
            }
        }
        // The last file may have been the last of all: then the next messages go straight on.
        self.connected();
    }

    fn close(&mut self) {
        self.primary.close();
        match &mut self.secondary {
            Secondary::Files(spool) => spool.close(),
            Secondary::Other(store) => store.close(),
        }
    }

    fn trouble(&self) -> Option<String> {
        self.trouble.clone().or_else(|| self.primary.trouble())
    }
}
