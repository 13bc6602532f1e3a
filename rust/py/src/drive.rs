//! `Requests`, `Trace` and `drive` for Python.

use std::ffi::c_int;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, Instant};

use pyo3::exceptions::{PyIndexError, PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyBytes, PyString};
use searchbench_core as core;

use crate::columns::{bytes, column};

/// As numpy wants it; the order and widths are those of `searchbench_core::Sample`.
pub const SAMPLE_DTYPE: [(&str, &str); 12] = [
    ("due", "<i8"),
    ("free", "<i8"),
    ("connect", "<i8"),
    ("sent", "<i8"),
    ("first_byte", "<i8"),
    ("done", "<i8"),
    ("request", "<u4"),
    ("bytes", "<u4"),
    ("host_low", "<u4"),
    ("connection", "<u2"),
    ("outcome", "u1"),
    ("host_high", "u1"),
];

/// The same for `searchbench_core::ExchangeTimes`.
pub const EXCHANGE_DTYPE: [(&str, &str); 5] = [
    ("sent", "<i8"),
    ("first_byte", "<i8"),
    ("done", "<i8"),
    ("sample", "<u4"),
    ("exchange", "<u4"),
];

/// How long to sleep before looking for signals again.
const SIGNALS_EVERY: Duration = Duration::from_millis(50);
/// How often `on_tick` is called.
const TICK_EVERY: Duration = Duration::from_millis(100);

/// Prepared requests: one arena of bytes and where each exchange ends.
#[pyclass(frozen, module = "searchbench._core")]
pub struct Requests(Arc<core::Requests>);

#[pymethods]
impl Requests {
    #[new]
    #[pyo3(signature = (arena, exchange_ends, request_ends, untimed=None))]
    fn new(
        arena: &Bound<'_, PyAny>,
        exchange_ends: &Bound<'_, PyAny>,
        request_ends: &Bound<'_, PyAny>,
        untimed: Option<(Bound<'_, PyAny>, Bound<'_, PyAny>)>,
    ) -> PyResult<Requests> {
        let exchange_ends = column::<u64>(exchange_ends, "exchange_ends")?;
        let request_ends = column::<u32>(request_ends, "request_ends")?;
        let requests = if let Ok(path) = arena.cast::<PyString>() {
            let path = PathBuf::from(path.to_str()?);
            core::Requests::open(&path, exchange_ends, request_ends).map_err(|error| {
                let message = format!("cannot map {}: {error}", path.display());
                PyOSError::new_err((error.raw_os_error().unwrap_or(0), message))
            })?
        } else {
            core::Requests::new(bytes(arena, "arena")?, exchange_ends, request_ends)
        };
        let mut requests = requests.map_err(PyValueError::new_err)?;
        if let Some((before, after)) = untimed {
            let before = column::<u32>(&before, "before")?;
            let after = column::<u32>(&after, "after")?;
            requests = requests
                .into_operations(before, after)
                .map_err(PyValueError::new_err)?;
        }
        Ok(Requests(Arc::new(requests)))
    }

    fn __len__(&self) -> usize {
        self.0.len()
    }
}

/// What happened: raw samples, replies that were kept, and the loop's own accounting.
#[pyclass(frozen, module = "searchbench._core")]
pub struct Trace(core::Trace);

#[pymethods]
impl Trace {
    fn __len__(&self) -> usize {
        self.0.len()
    }

    /// The samples, read only.
    ///
    /// # Safety
    /// Called by Python with a view to fill. The samples never move nor change, and the view
    /// holds a reference to this object.
    unsafe fn __getbuffer__(
        slf: Bound<'_, Self>,
        view: *mut pyo3::ffi::Py_buffer,
        flags: c_int,
    ) -> PyResult<()> {
        let samples = slf.get().0.bytes();
        let filled = unsafe {
            pyo3::ffi::PyBuffer_FillInfo(
                view,
                slf.as_ptr(),
                samples.as_ptr().cast_mut().cast(),
                samples.len() as isize,
                1,
                flags,
            )
        };
        if filled == 0 {
            Ok(())
        } else {
            Err(PyErr::fetch(slf.py()))
        }
    }

    /// (index of the sample, reply bytes as received) for each kept reply.
    fn replies<'py>(&self, py: Python<'py>) -> Vec<(u64, Bound<'py, PyBytes>)> {
        self.0
            .replies()
            .map(|(sample, bytes)| (sample, PyBytes::new(py, &bytes)))
            .collect()
    }

    /// (index of the sample, number of pieces) of each kept reply.
    fn kept(&self) -> Vec<(u64, usize)> {
        self.0.kept().collect()
    }

    /// One piece of a kept reply, both by their numbers.
    fn piece<'py>(
        &self,
        py: Python<'py>,
        reply: usize,
        piece: usize,
    ) -> PyResult<Bound<'py, PyBytes>> {
        let found = self.0.piece(reply, piece);
        let missing = || PyIndexError::new_err(format!("there is no piece {piece} of {reply}"));
        Ok(PyBytes::new(py, found.ok_or_else(missing)?))
    }

    /// The exchanges of all requests as bytes of `EXCHANGE_DTYPE`, where they were asked for.
    fn exchanges<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.0.exchange_bytes())
    }

    /// The first so many samples were read for now.
    fn give_back(&self, samples: usize) {
        self.0.pass(samples);
    }

    /// JSON of what the loop itself used and counted.
    fn accounting(&self) -> String {
        self.0.accounting().json()
    }
}

fn raised(error: core::Error) -> PyErr {
    match error {
        core::Error::Invalid(message) => PyValueError::new_err(message),
        core::Error::Machine(error) => {
            let code = error.raw_os_error().unwrap_or(0);
            PyOSError::new_err((code, error.to_string()))
        }
        core::Error::Stopped => PyKeyboardInterrupt::new_err("the drive was stopped"),
    }
}

/// Names by target, authorities, certificate and key (all PEM), and whether any will do.
type TlsGiven = (Vec<String>, Option<String>, Option<(String, String)>, bool);

fn secured(given: TlsGiven, wire: &str) -> Result<core::Tls, String> {
    let (names, ca, identity, insecure) = given;
    let settings = core::TlsSettings {
        names,
        ca: ca.map(String::into_bytes),
        identity: identity.map(|(cert, key)| (cert.into_bytes(), key.into_bytes())),
        insecure,
    };
    core::Tls::new(&settings, wire == "http")
}

/// One (host, port), or several.
fn targets(given: &Bound<'_, PyAny>) -> PyResult<Vec<(String, u16)>> {
    given
        .extract::<(String, u16)>()
        .map(|one| vec![one])
        .or_else(|_| given.extract::<Vec<(String, u16)>>())
        .map_err(|_| {
            PyValueError::new_err(
                "target must be (host, port) or a sequence of these, with ports of 0 to 65535",
            )
        })
}

/// Drive prepared requests at a target and record every one of them.
#[pyfunction]
#[pyo3(
    signature = (target, wire, requests, *, login=None, whole=vec![], prelude=vec![], tls=None, sequence, client_starts=None,
        due_ns=None, connections, think_ns=0, repeat=false, stop_ns=None, stop_after=None,
        timeout_ns=10_000_000_000, request_targets=None, request_timeouts_ns=None, remote=false,
        capture_every=0, exchange_times=false, cpus=vec![], idle="hybrid", realtime=false, start_unix_ns=None, spill=None,
        spill_after_bytes=268_435_456, on_tick=None),
    text_signature = "(target, wire, requests, *, login=None, whole=(), prelude=(), tls=None, sequence, \
        client_starts=None, due_ns=None, connections, think_ns=0, repeat=False, stop_ns=None, \
        stop_after=None, timeout_ns=10000000000, request_targets=None, request_timeouts_ns=None, \
        remote=False, capture_every=0, exchange_times=False, cpus=(), idle='hybrid', realtime=False, \
        start_unix_ns=None, spill=None, spill_after_bytes=268435456, on_tick=None)"
)]
#[allow(clippy::too_many_arguments)] // The stub decides them, and all but three are named.
pub fn drive(
    py: Python<'_>,
    target: &Bound<'_, PyAny>,
    wire: &str,
    requests: &Requests,
    login: Option<(String, String, String)>,
    whole: Vec<Vec<u8>>,
    prelude: Vec<Vec<u8>>,
    tls: Option<TlsGiven>,
    sequence: &Bound<'_, PyAny>,
    client_starts: Option<&Bound<'_, PyAny>>,
    due_ns: Option<&Bound<'_, PyAny>>,
    connections: usize,
    think_ns: i64,
    repeat: bool,
    stop_ns: Option<i64>,
    stop_after: Option<u64>,
    timeout_ns: i64,
    request_targets: Option<&Bound<'_, PyAny>>,
    request_timeouts_ns: Option<&Bound<'_, PyAny>>,
    remote: bool,
    capture_every: u64,
    exchange_times: bool,
    cpus: Vec<usize>,
    idle: &str,
    realtime: bool,
    start_unix_ns: Option<i64>,
    spill: Option<PathBuf>,
    spill_after_bytes: usize,
    on_tick: Option<Bound<'_, PyAny>>,
) -> PyResult<Trace> {
    let sequence = column::<u32>(sequence, "sequence")?;
    let client_starts = client_starts
        .map(|given| column::<u32>(given, "client_starts"))
        .transpose()?;
    let due_ns = due_ns
        .map(|given| column::<i64>(given, "due_ns"))
        .transpose()?;
    let load = core::Load::new(
        sequence,
        client_starts,
        due_ns,
        think_ns,
        repeat,
        stop_after,
    )
    .map_err(PyValueError::new_err)?;
    let login = login
        .map(|(user, password, database)| core::Login::new(user, password, database))
        .transpose()
        .map_err(PyValueError::new_err)?;
    let options = core::Options {
        targets: targets(target)?
            .iter()
            .map(|(host, port)| py.detach(|| core::resolve(host, *port, remote)))
            .collect::<Result<_, _>>()
            .map_err(raised)?,
        request_targets: request_targets
            .map(|given| column::<u16>(given, "request_targets"))
            .transpose()?,
        wire: core::WireKind::named(wire, login, whole).map_err(PyValueError::new_err)?,
        prelude,
        tls: tls
            .map(|given| secured(given, wire))
            .transpose()
            .map_err(PyValueError::new_err)?,
        load,
        connections,
        stop_ns,
        timeout_ns,
        request_timeouts_ns: request_timeouts_ns
            .map(|given| column::<i64>(given, "request_timeouts_ns"))
            .transpose()?,
        capture_every,
        exchange_times,
        cpus,
        idle: core::Idle::named(idle).ok_or_else(|| {
            PyValueError::new_err(format!("idle is {idle:?}, not 'block', 'hybrid' or 'spin'"))
        })?,
        realtime,
        start_unix_ns,
        spill,
        spill_after_bytes,
    };
    let requests = Arc::clone(&requests.0);
    let mut drive = py
        .detach(|| core::Drive::start(requests, options))
        .map_err(raised)?;
    // Dropping the drive on the way out stops the threads and waits for them.
    let mut ticked = Instant::now();
    while !py.detach(|| drive.wait(SIGNALS_EVERY)) {
        py.check_signals()?;
        if let Some(on_tick) = &on_tick
            && ticked.elapsed() >= TICK_EVERY
        {
            ticked = Instant::now();
            let recent = PyBytes::new(py, &drive.recent());
            let said = on_tick.call1((drive.completed(), drive.elapsed_ns(), recent))?;
            if said.cast::<PyBool>().is_ok_and(|more| !more.is_true()) {
                drive.cut_short();
            }
        }
    }
    py.detach(|| drive.finish()).map(Trace).map_err(raised)
}
