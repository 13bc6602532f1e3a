//! The bindings: bytes, integers and columns cross here, nothing else.
use pyo3::prelude::*;

#[pymodule]
fn _core(m: &Bound<'_, PyModule>) -> PyResult<()> {
    m.add("version", env!("CARGO_PKG_VERSION"))?;
    m.add("profile", if cfg!(debug_assertions) { "debug" } else { "release" })?;
    Ok(())
}
