//! The collector: started, checked, and fed from standard input.

use std::path::PathBuf;
use std::time::Duration;

use pyo3::exceptions::{PyOSError, PyValueError};
use pyo3::prelude::*;
use searchbench_collect::{Trouble, cat, check, serve};

/// Line, key, what is wrong, what to do, and whether it prevents a start.
type Mistake = (u32, String, String, String, bool);

/// Serve until told to stop.
#[pyfunction]
#[pyo3(signature = (path, host, port))]
pub fn collect_serve(
    py: Python<'_>,
    path: PathBuf,
    host: Option<String>,
    port: Option<u16>,
) -> PyResult<()> {
    py.detach(|| serve(&path, host.as_deref(), port))
        .map_err(|trouble| match trouble {
            Trouble::Mistakes(path, mistakes) => {
                let path = path.display();
                let lines: Vec<_> = mistakes
                    .iter()
                    .filter(|mistake| mistake.fatal)
                    .map(|mistake| format!("{path}: {mistake}"))
                    .collect();
                PyValueError::new_err(lines.join("\n"))
            }
            Trouble::Failed(why) => PyOSError::new_err(why),
        })
}

/// The mistakes of a configuration, in the order of their lines.
#[pyfunction]
#[pyo3(signature = (path))]
pub fn collect_check(py: Python<'_>, path: PathBuf) -> PyResult<Vec<Mistake>> {
    let (_, mistakes) = py.detach(|| check(&path)).map_err(PyOSError::new_err)?;
    Ok(mistakes
        .into_iter()
        .map(|m| (m.line, m.key, m.what, m.hint, m.fatal))
        .collect())
}

/// Send standard input to a category; how many messages it was.
#[pyfunction]
#[pyo3(signature = (host, port, category, whole, patience_s))]
pub fn collect_cat(
    py: Python<'_>,
    host: &str,
    port: u16,
    category: &str,
    whole: bool,
    patience_s: f64,
) -> PyResult<u64> {
    let patience = Duration::try_from_secs_f64(patience_s)
        .map_err(|error| PyValueError::new_err(format!("patience_s: {error}")))?;
    py.detach(|| cat(std::io::stdin(), host, port, category, whole, patience))
        .map_err(PyOSError::new_err)
}
