//! What all threads of a drive see: what they were asked to do, and the few words between them.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::AtomicBool;

use crate::arena::Requests;
use crate::deadlines::Timeouts;
use crate::idle::Idle;
use crate::pace::{Load, Terms};
use crate::plan::Planned;
use crate::spill::Recorded;
use crate::sys::StopFlag;
use crate::tls::Tls;

pub(crate) struct Shared {
    pub targets: Vec<SocketAddr>,
    pub load: Load,
    pub terms: Terms,
    /// For each thread the connections it opens.
    pub plan: Vec<Vec<Planned>>,
    pub requests: Arc<Requests>,
    pub timeouts: Timeouts,
    pub tls: Option<Tls>,
    /// Sockets have TCP_NODELAY.
    pub at_once: bool,
    pub capture_every: u64,
    pub exchange_times: bool,
    pub idle: Idle,
    pub stop: Arc<StopFlag>,
    /// The stop ends the drive as it is, and the trace is kept.
    pub cut_short: AtomicBool,
    /// What each thread has recorded so far.
    pub recorded: Arc<[Recorded]>,
    /// The replies that each thread has kept so far.
    pub laid: Arc<[Recorded]>,
}
