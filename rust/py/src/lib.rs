//! The bindings: bytes, integers and columns cross here, nothing else.
//!
//! `python/searchbench/_core.pyi` is the specification; a test holds this module to it.

mod collect;
mod columns;
mod drive;
mod entries;
mod logs;
mod toml;

use pyo3::prelude::*;

/// Be a library host until told to stop; returns the exit code.
#[pyfunction]
fn serve_library_host(py: Python<'_>, argv: Vec<String>) -> i32 {
    py.detach(|| searchbench_hosts::run(argv))
}

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("version", env!("CARGO_PKG_VERSION"))?;
    m.add(
        "profile",
        if cfg!(debug_assertions) {
            "debug"
        } else {
            "release"
        },
    )?;
    m.add(
        "OUTCOMES",
        pyo3::types::PyTuple::new(m.py(), searchbench_core::OUTCOMES)?,
    )?;
    m.add("SAMPLE_DTYPE", drive::SAMPLE_DTYPE.to_vec())?;
    m.add("EXCHANGE_DTYPE", drive::EXCHANGE_DTYPE.to_vec())?;
    m.add_class::<drive::Requests>()?;
    m.add_class::<drive::Trace>()?;
    m.add_function(wrap_pyfunction!(collect::collect_cat, m)?)?;
    m.add_function(wrap_pyfunction!(collect::collect_check, m)?)?;
    m.add_function(wrap_pyfunction!(collect::collect_serve, m)?)?;
    m.add_class::<logs::Log>()?;
    let (formats, roles) = logs::names();
    m.add("LOG_FORMATS", pyo3::types::PyTuple::new(m.py(), formats)?)?;
    m.add("LOG_BLOCK_BYTES", searchbench_logs::source::BLOCK)?;
    m.add("LOG_LONG_LINES", searchbench_logs::format::LONG_LINES)?;
    m.add("LOG_CUT_LINES", searchbench_logs::format::CUT_LINES)?;
    m.add("LOG_HOUR_BACK", searchbench_logs::format::HOUR_BACK)?;
    m.add("LOG_CORRUPT", searchbench_logs::damage::CORRUPT)?;
    m.add("LOG_DAMAGED", searchbench_logs::damage::DAMAGED)?;
    m.add("LOG_SLOW_REQUEST", searchbench_logs::format::SLOW)?;
    m.add("LOG_LETTERS", searchbench_logs::format::LETTERS)?;
    m.add("LOG_OUTSIDE", searchbench_logs::format::OUTSIDE)?;
    m.add("LOG_TIMELESS", searchbench_logs::format::TIMELESS)?;
    m.add("LOG_TWICE", searchbench_logs::clock::TWICE)?;
    m.add("LOG_SECOND", searchbench_logs::clock::SECOND)?;
    m.add("LOG_ROLES", pyo3::types::PyTuple::new(m.py(), roles)?)?;
    m.add_function(wrap_pyfunction!(drive::drive, m)?)?;
    m.add_function(wrap_pyfunction!(logs::class_of_request, m)?)?;
    m.add_function(wrap_pyfunction!(entries::log_entries, m)?)?;
    m.add_function(wrap_pyfunction!(logs::generate_log, m)?)?;
    m.add_function(wrap_pyfunction!(logs::generated_indexes, m)?)?;
    m.add_function(wrap_pyfunction!(logs::query_hashes, m)?)?;
    m.add_function(wrap_pyfunction!(logs::log_went_back, m)?)?;
    m.add_function(wrap_pyfunction!(logs::look_at_log, m)?)?;
    m.add_function(wrap_pyfunction!(logs::look_at_ends_of_log, m)?)?;
    m.add_function(wrap_pyfunction!(serve_library_host, m)?)?;
    m.add_function(wrap_pyfunction!(toml::toml_spans, m)?)?;
    m.add_function(wrap_pyfunction!(toml::toml_set, m)?)?;
    Ok(())
}
