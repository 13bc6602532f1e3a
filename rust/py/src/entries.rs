//! The entries of logs one by one, as columns.

use pyo3::exceptions::{PyKeyboardInterrupt, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use searchbench_logs::clock::Zone;
use searchbench_logs::entries::{self, PARTS};
use searchbench_logs::format::Settings;
use searchbench_logs::format::named::check_pattern;
use searchbench_logs::source::Sizes;
use searchbench_logs::{Options, Source};

use crate::logs::{Offsets, how, of_read, role, zones_of};

/// Reads entries; see `_core.pyi`.
#[pyfunction]
#[pyo3(signature = (sources, *, zone = Vec::new(), zones = Vec::new(), unit_ns = 0, parameters = Vec::new(),
                    columns = Vec::new(), line = String::new(), within = None, follows = Vec::new(),
                    on_tick = None),
       text_signature = "(sources, *, zone=(), zones=(), unit_ns=0, parameters=(), columns=(), \
                         line='', within=None, follows=(), on_tick=None)")]
#[allow(clippy::too_many_arguments)]
pub fn log_entries<'py>(
    py: Python<'py>,
    sources: Vec<(String, String, String, u64)>,
    zone: Offsets,
    zones: Vec<(String, Offsets)>,
    unit_ns: u64,
    parameters: Vec<String>,
    columns: Vec<(String, String, String)>,
    line: String,
    within: Option<(i64, i64)>,
    follows: Vec<u8>,
    on_tick: Option<Py<PyAny>>,
) -> PyResult<(Bound<'py, PyDict>, Bound<'py, PyList>)> {
    let columns: PyResult<Vec<_>> = columns.into_iter().map(role).collect();
    if !line.is_empty() {
        check_pattern(&line).map_err(PyValueError::new_err)?;
    }
    let options = Options {
        settings: Settings {
            zone: Zone(zone),
            zones: zones_of(zones),
            unit_ns,
            parameters: parameters.into_iter().map(String::into_bytes).collect(),
            columns: columns?,
            pattern: line,
            within,
        },
        threads: 1,
        keep_tail: false,
        sizes: Sizes::default(),
    };
    let sources: Vec<Source> = sources
        .into_iter()
        .zip(follows.into_iter().chain(std::iter::repeat(0)))
        .map(|((path, server, format, skip), follows)| Source {
            path,
            server,
            format,
            skip,
            follows: how(follows),
            ..Source::default()
        })
        .collect();
    let mut raised = None;
    let done = py.detach(|| {
        entries::read(&sources, &options, &mut |bytes| {
            Python::attach(|py| {
                let told = py.check_signals().and_then(|()| match &on_tick {
                    Some(call) => call.call1(py, (bytes,)).map(|_| ()),
                    None => Ok(()),
                });
                told.map_err(|e| raised = Some(e)).is_ok()
            })
        })
    });
    let (read, reads) = done.map_err(|why| {
        raised.unwrap_or_else(|| {
            if why == "interrupted" {
                PyKeyboardInterrupt::new_err(())
            } else {
                PyValueError::new_err(why)
            }
        })
    })?;
    let found = PyDict::new(py);
    found.set_item("at_ns", plain(py, &read.at_ns))?;
    found.set_item("ns", plain(py, &read.ns))?;
    found.set_item("resolution_ns", plain(py, &read.resolution_ns))?;
    found.set_item("words", plain(py, &read.words))?;
    found.set_item("kind", plain(py, &read.kind))?;
    found.set_item("asked", plain(py, &read.asked))?;
    found.set_item("source", plain(py, &read.source))?;
    found.set_item("parts", PARTS.to_vec())?;
    found.set_item("bytes", PyBytes::new(py, &read.bytes))?;
    found.set_item("ends", plain(py, &read.ends))?;
    let told = PyList::empty(py);
    for one in &reads {
        told.append(of_read(py, one)?)?;
    }
    Ok((found, told))
}

/// A column as bytes, little-endian.
fn plain<'py, T: Copy>(py: Python<'py>, values: &[T]) -> Bound<'py, PyBytes> {
    // SAFETY: `T` is an integer here, so its memory is bytes; the slice lives while it is copied.
    let raw = unsafe {
        std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), std::mem::size_of_val(values))
    };
    PyBytes::new(py, raw)
}
