//! Reading logs: sources and options in, tables of columns out.
//!
//! Longer than 450 lines, because each call names all its arguments twice, for Rust and for Python.

use pyo3::exceptions::{PyKeyboardInterrupt, PyOSError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict, PyList};
use searchbench_logs::clock::Zone;
use searchbench_logs::format::named::check_pattern;
use searchbench_logs::format::roles::{ROLES, Role, unit};
use searchbench_logs::format::{Format, Seen, Settings, back_between, class_of};
use searchbench_logs::generate::{Plan, index_bytes, index_name, plain};
use searchbench_logs::queries::{give_back, identity};
use searchbench_logs::source::Sizes;
use searchbench_logs::sql::Dialect;
use searchbench_logs::tables::{self, Column};
use searchbench_logs::{
    Follows, Log as Counted, Open, Options, Part, Source, look, look_at_ends, run,
};

use crate::columns;

/// What the last reading left: the state of its reader, lines of the file before, lines, the time of
/// its last entry, the second of its last stamp.
type Opened = (Vec<u8>, Vec<u8>, Vec<u8>, Option<i64>, Option<i64>);
/// The offsets of a zone: from which second, seconds east.
pub type Offsets = Vec<(i64, i64)>;

/// The format of a source, whether its lines join, its first entry, and what is so of its ends.
type Ends = (&'static str, bool, Option<i64>, bool, bool, bool);

/// A log that was read, or is put together from tables.
#[pyclass(module = "searchbench._core")]
pub struct Log(Counted);

#[pymethods]
impl Log {
    #[new]
    #[pyo3(signature = (distinct = 10_000_000))]
    fn new(distinct: usize) -> Log {
        Log(Counted::new(distinct))
    }

    #[pyo3(signature = (sources, *, zone = Vec::new(), zones = Vec::new(), unit_ns = 0, parameters = Vec::new(),
                        columns = Vec::new(), line = String::new(), within = None, threads = 0,
                        keep_tail = false, parts = Vec::new(), opens = Vec::new(),
                        follows = Vec::new(), on_tick = None),
           text_signature = "($self, sources, *, zone=(), zones=(), unit_ns=0, parameters=(), columns=(), \
                             line='', within=None, threads=0, keep_tail=False, parts=(), opens=(), follows=(), \
                             on_tick=None)")]
    #[allow(clippy::too_many_arguments)]
    fn read<'py>(
        &mut self,
        py: Python<'py>,
        sources: Vec<(String, String, String, u64)>,
        zone: Offsets,
        zones: Vec<(String, Offsets)>,
        unit_ns: u64,
        parameters: Vec<String>,
        columns: Vec<(String, String, String)>,
        line: String,
        within: Option<(i64, i64)>,
        threads: usize,
        keep_tail: bool,
        parts: Vec<Option<(u64, u64, u64)>>,
        opens: Vec<Opened>,
        follows: Vec<u8>,
        on_tick: Option<Py<PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
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
            threads,
            keep_tail,
            sizes: Sizes::default(),
        };
        if !parts.is_empty() && parts.len() != sources.len() {
            return Err(PyValueError::new_err(format!(
                "there are {} parts of {} sources",
                parts.len(),
                sources.len()
            )));
        }
        let in_parts = !parts.is_empty();
        let sources: Vec<Source> = sources
            .into_iter()
            .zip(parts.into_iter().chain(std::iter::repeat(None)))
            .zip(
                opens
                    .into_iter()
                    .chain(std::iter::repeat(Opened::default())),
            )
            .zip(follows.into_iter().chain(std::iter::repeat(0)))
            .map(
                |((((path, server, format, skip), part), open), follows)| Source {
                    path,
                    server,
                    format,
                    skip,
                    part: part.map(|(len, from, to)| Part { len, from, to }),
                    open: opened(open),
                    follows: how(follows),
                },
            )
            .collect();
        let before = self.0.reads.len();
        let mut raised = None;
        let log = &mut self.0;
        let done = py.detach(|| {
            run::read(log, &sources, &options, &mut |bytes| {
                Python::attach(|py| {
                    let told = py.check_signals().and_then(|()| match &on_tick {
                        Some(call) => call.call1(py, (bytes,)).map(|_| ()),
                        None => Ok(()),
                    });
                    told.map_err(|e| raised = Some(e)).is_ok()
                })
            })
        });
        if let Err(why) = done {
            return Err(raised.unwrap_or_else(|| {
                if why == "interrupted" {
                    PyKeyboardInterrupt::new_err(())
                } else {
                    PyValueError::new_err(why)
                }
            }));
        }
        let found = PyList::empty(py);
        for read in &self.0.reads[before..] {
            let one = of_read(py, read)?;
            if keep_tail {
                let Open {
                    state,
                    before,
                    text,
                    last_ns,
                    at_s,
                } = &read.open;
                let [state, before, text] =
                    [state, before, text].map(|bytes| PyBytes::new(py, bytes));
                one.set_item("open", (state, before, text, last_ns, at_s))?;
            }
            one.set_item("clock", (read.open.last_ns, read.open.at_s))?;
            if in_parts {
                let seen = &read.seen;
                one.set_item("span_ns", seen.first_ns.map(|first| (first, seen.last_ns)))?;
            }
            found.append(one)?;
        }
        Ok(found)
    }

    #[pyo3(signature = (sources, opens, *, zone = Vec::new(), zones = Vec::new(), unit_ns = 0, parameters = Vec::new(),
                        columns = Vec::new(), line = String::new(), within = None),
           text_signature = "($self, sources, opens, *, zone=(), zones=(), unit_ns=0, parameters=(), \
                             columns=(), line='', within=None)")]
    #[allow(clippy::too_many_arguments)]
    fn read_open<'py>(
        &mut self,
        py: Python<'py>,
        sources: Vec<(String, String)>,
        opens: Vec<Opened>,
        zone: Offsets,
        zones: Vec<(String, Offsets)>,
        unit_ns: u64,
        parameters: Vec<String>,
        columns: Vec<(String, String, String)>,
        line: String,
        within: Option<(i64, i64)>,
    ) -> PyResult<Bound<'py, PyList>> {
        let columns: PyResult<Vec<_>> = columns.into_iter().map(role).collect();
        let settings = Settings {
            zone: Zone(zone),
            zones: zones_of(zones),
            unit_ns,
            parameters: parameters.into_iter().map(String::into_bytes).collect(),
            columns: columns?,
            pattern: line,
            within,
        };
        let mut given = Vec::new();
        for ((server, name), open) in sources.into_iter().zip(opens) {
            let format = Format::named(&name)
                .ok_or_else(|| PyValueError::new_err(format!("{name:?} is no format")))?;
            let source = Source {
                server,
                open: opened(open),
                ..Source::default()
            };
            given.push((source, format));
        }
        let log = &mut self.0;
        let found = py.detach(|| run::read_open(log, &given, &settings));
        let all = PyList::empty(py);
        for (seen, (_, format)) in found.iter().zip(&given) {
            let one = PyDict::new(py);
            put_seen(&one, seen, Some(*format))?;
            all.append(one)?;
        }
        Ok(all)
    }

    fn tables<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let empty = Counted::new(self.0.queries.limit());
        let log = std::mem::replace(&mut self.0, empty);
        let made = py.detach(|| tables::of(log));
        let found = PyDict::new(py);
        for (name, columns) in made {
            let table = PyDict::new(py);
            for (column, values) in columns {
                match values {
                    Column::U64(values) => table.set_item(column, bytes_of(py, &values))?,
                    Column::Bytes(all, ends) => {
                        table.set_item(column, (PyBytes::new(py, &all), bytes_of(py, &ends)))?;
                    }
                }
            }
            found.set_item(name, table)?;
        }
        give_back();
        Ok(found)
    }

    fn add(&mut self, py: Python<'_>, given: &Bound<'_, PyDict>) -> PyResult<()> {
        let mut all = Vec::new();
        for (name, table) in given.iter() {
            let mut columns = Vec::new();
            for (column, values) in table.cast::<PyDict>()?.iter() {
                let called: String = column.extract()?;
                let held = match values.extract::<(Bound<'_, PyAny>, Bound<'_, PyAny>)>() {
                    Ok((data, ends)) => Column::Bytes(
                        columns::bytes(&data, &called)?,
                        columns::column::<u64>(&ends, &called)?,
                    ),
                    Err(_) => Column::U64(columns::column::<u64>(&values, &called)?),
                };
                columns.push((called, held));
            }
            all.push((name.extract::<String>()?, columns));
        }
        py.detach(|| tables::add(&mut self.0, &all))
            .map_err(PyValueError::new_err)
    }
}

/// What a source is: its format, why it cannot be read, its length, whether its lines join.
#[pyfunction]
#[pyo3(signature = (path, *, named = String::new(), keep_tail = false),
       text_signature = "(path, *, named='', keep_tail=False)")]
pub fn look_at_log(
    py: Python<'_>,
    path: String,
    named: String,
    keep_tail: bool,
) -> (&'static str, String, Option<u64>, bool) {
    let source = Source {
        path,
        format: named,
        ..Source::default()
    };
    let found = py.detach(|| look(&source, keep_tail));
    (
        found.format.map_or("", Format::name),
        found.refused,
        found.len,
        found.format.is_some_and(Format::joins),
    )
}

/// What became of a source.
pub fn of_read<'py>(py: Python<'py>, read: &run::Read) -> PyResult<Bound<'py, PyDict>> {
    let one = PyDict::new(py);
    one.set_item("path", &read.source.path)?;
    one.set_item("server", &read.source.server)?;
    one.set_item("format", read.format.map_or("", Format::name))?;
    one.set_item("refused", &read.refused)?;
    one.set_item("bytes", read.bytes)?;
    one.set_item("skipped_bytes", read.source.skip)?;
    put_seen(&one, &read.seen, read.format)?;
    Ok(one)
}

fn opened((state, before, text, last_ns, at_s): Opened) -> Open {
    Open {
        state,
        before,
        text,
        last_ns,
        at_s,
    }
}

/// How a source follows: 0 not at all, 1 with a line of its own, 2 perhaps within one.
pub fn how(follows: u8) -> Follows {
    match follows {
        0 => Follows::No,
        1 => Follows::Next,
        _ => Follows::Within,
    }
}

/// Zones of servers by name.
pub fn zones_of(zones: Vec<(String, Offsets)>) -> Vec<(Vec<u8>, Zone)> {
    let named = zones.into_iter();
    named
        .map(|(name, offsets)| (name.into_bytes(), Zone(offsets)))
        .collect()
}

/// Whether the clock of a log went back between two entries; see `_core.pyi`.
#[pyfunction]
pub fn log_went_back(from_ns: i64, to_ns: i64) -> Option<bool> {
    back_between(from_ns, to_ns)
}

/// The ends of a source: its format, whether its lines join, its first entry, whether its first line
/// begins an entry, whether its first stamp is in an hour that passed twice, whether a line waits at
/// its end for another.
#[pyfunction]
#[pyo3(signature = (path, *, server = String::new(), named = String::new(), before = Vec::new(),
                    zone = Vec::new(), zones = Vec::new(), unit_ns = 0, parameters = Vec::new(),
                    columns = Vec::new(), line = String::new(), within = None),
       text_signature = "(path, *, server='', named='', before=b'', zone=(), zones=(), unit_ns=0, \
                         parameters=(), columns=(), line='', within=None)")]
#[allow(clippy::too_many_arguments)]
pub fn look_at_ends_of_log(
    py: Python<'_>,
    path: String,
    server: String,
    named: String,
    before: Vec<u8>,
    zone: Offsets,
    zones: Vec<(String, Offsets)>,
    unit_ns: u64,
    parameters: Vec<String>,
    columns: Vec<(String, String, String)>,
    line: String,
    within: Option<(i64, i64)>,
) -> PyResult<Ends> {
    let columns: PyResult<Vec<_>> = columns.into_iter().map(role).collect();
    if !line.is_empty() {
        check_pattern(&line).map_err(PyValueError::new_err)?;
    }
    let settings = Settings {
        zone: Zone(zone),
        zones: zones_of(zones),
        unit_ns,
        parameters: parameters.into_iter().map(String::into_bytes).collect(),
        columns: columns?,
        pattern: line,
        within,
    };
    let source = Source {
        path,
        server,
        format: named,
        ..Source::default()
    };
    let found = py.detach(|| look_at_ends(&source, &settings, &before));
    Ok((
        found.format.map_or("", Format::name),
        found.format.is_some_and(Format::joins),
        found.first_ns,
        found.begins,
        found.twice,
        found.waits,
    ))
}

/// What was met besides entries. `format`: what it was read as, which is none of the others.
fn put_seen(one: &Bound<'_, PyDict>, seen: &Seen, format: Option<Format>) -> PyResult<()> {
    one.set_item("lines", seen.lines)?;
    one.set_item("entries", seen.entries)?;
    one.set_item("unread", seen.unread)?;
    one.set_item("longest_line", seen.longest)?;
    one.set_item("back", seen.back)?;
    let examples: Vec<(u64, &str, String)> = seen
        .examples
        .iter()
        .map(|(line, why, text)| (*line, *why, String::from_utf8_lossy(text).into_owned()))
        .collect();
    one.set_item("examples", examples)?;
    let others: Vec<(&str, u64, u64)> = seen
        .others
        .iter()
        .filter(|(other, ..)| Some(*other) != format)
        .map(|&(format, lines, first)| (format.name(), lines, first))
        .collect();
    one.set_item("other_formats", others)?;
    let notes = PyDict::new(one.py());
    for (what, n) in &seen.notes {
        notes.set_item(what, n)?;
    }
    one.set_item("notes", notes)
}

fn bytes_of<'py>(py: Python<'py>, values: &[u64]) -> Bound<'py, PyBytes> {
    // SAFETY: any u64 is eight bytes, and the slice lives while they are copied.
    let raw = unsafe { std::slice::from_raw_parts(values.as_ptr().cast::<u8>(), values.len() * 8) };
    PyBytes::new(py, raw)
}

/// A column by name, its role and its unit.
pub fn role((name, role, of): (String, String, String)) -> PyResult<(Vec<u8>, Role, u64)> {
    let found = ROLES
        .iter()
        .find(|(n, _)| *n == role)
        .map(|(_, role)| *role);
    let names: Vec<&str> = ROLES.iter().map(|(n, _)| *n).collect();
    let found = found.ok_or_else(|| {
        PyValueError::new_err(format!(
            "{role:?} is nothing a column can be; there are {}",
            names.join(", ")
        ))
    })?;
    let ns = if of.is_empty() { Some(0) } else { unit(&of) };
    let ns = ns.ok_or_else(|| {
        PyValueError::new_err(format!("{of:?} is no unit; there are s, ms, us, ns"))
    })?;
    Ok((name.into_bytes(), found, ns))
}

/// The names of the formats, and what columns can be.
pub fn names() -> (Vec<&'static str>, Vec<&'static str>) {
    (
        Format::ALL.iter().map(|f| f.name()).collect(),
        ROLES.iter().map(|(n, _)| *n).collect(),
    )
}

/// Writes a generated log; a file, or "-" for standard output.
#[pyfunction]
#[pyo3(signature = (path, *, lines, server, indexes, distinct, seed, start_s, per_s))]
#[allow(clippy::too_many_arguments)]
pub fn generate_log(
    py: Python<'_>,
    path: String,
    lines: u64,
    server: u64,
    indexes: u64,
    distinct: u64,
    seed: u64,
    start_s: i64,
    per_s: f64,
) -> PyResult<()> {
    let plan = Plan {
        lines,
        server,
        indexes,
        distinct,
        seed,
        start_s,
        per_s,
    };
    let done = py.detach(|| {
        if path == "-" {
            return plain(&plan, &mut std::io::stdout().lock());
        }
        plain(&plan, &mut std::fs::File::create(&path)?)
    });
    done.map_err(|e| match e.raw_os_error() {
        // With its number, by which a full disk is known.
        Some(number) => PyOSError::new_err((number, std::io::Error::from(e.kind()).to_string())),
        None => PyErr::from(e),
    })
}

/// Of each index of a generated log its name and its bytes.
#[pyfunction]
pub fn generated_indexes(indexes: u64) -> Vec<(String, u64)> {
    (0..indexes)
        .map(|index| (index_name(index), index_bytes(index, indexes)))
        .collect()
}

/// Of each text, for each index, the hash that this query of this index has in a table of counts
/// (u64 by u64, one index after another).
#[pyfunction]
pub fn query_hashes(py: Python<'_>, indexes: Vec<Vec<u8>>, texts: Vec<Vec<u8>>) -> Py<PyBytes> {
    let found: Vec<u8> = py.detach(|| {
        let of_all = indexes
            .iter()
            .flat_map(|index| texts.iter().map(|text| identity(index, text)));
        of_all.flat_map(u64::to_ne_bytes).collect()
    });
    PyBytes::new(py, &found).unbind()
}

/// The class that a request has in a log.
#[pyfunction]
#[pyo3(signature = (method, text, dialect = "mysql"))]
pub fn class_of_request(method: &str, text: &str, dialect: &str) -> PyResult<String> {
    let dialect = match dialect {
        "mysql" => Dialect::Mysql,
        "postgresql" => Dialect::Postgres,
        "sphinxql" => Dialect::Sphinx,
        other => return Err(PyValueError::new_err(format!("{other:?} is no dialect"))),
    };
    let class = class_of(method.as_bytes(), text.as_bytes(), dialect);
    Ok(String::from_utf8_lossy(&class).into_owned())
}
