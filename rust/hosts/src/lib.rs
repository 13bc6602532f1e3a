//! Library hosts: engines that are libraries, served over the framed protocol of FORMATS.md.
//!
//! `run` is the command; `Host` is the same inside this process, for tests and benchmarks.

pub mod analysis;
pub mod engine;
pub mod failure;
pub mod frame;
mod ids;
mod null;
pub mod options;
pub mod query;
pub mod reply;
pub mod schema;
mod serve;
mod signal;
pub mod sqlite;
pub mod tantivy;

use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use engine::Engine;
use options::{Kind, Options, Spec, nearest};
use signal::{Handlers, Wake};

const COMMON: &[Spec] = &[
    Spec {
        name: "port",
        kind: Kind::Int(0, 65535),
        default: "0",
    },
    Spec {
        name: "data",
        kind: Kind::Text,
        default: "",
    },
];

const ENGINES: [&str; 3] = ["tantivy", "sqlite", "null"];

/// A running library host. Dropping it does not stop it.
pub struct Host {
    /// Where it listens.
    pub address: SocketAddr,
    wake: Arc<Wake>,
    thread: JoinHandle<()>,
}

impl Host {
    /// Starts the host that `argv` describes (FORMATS.md, "Starting a host"); the error is one
    /// sentence.
    pub fn start(argv: &[String]) -> Result<Host, String> {
        let named = argv
            .first()
            .ok_or("which engine? one of tantivy, sqlite, null")?;
        let rest = &argv[1..];
        let specs = match named.as_str() {
            "tantivy" => tantivy::OPTIONS,
            "sqlite" => sqlite::OPTIONS,
            "null" => null::OPTIONS,
            other => {
                let near = nearest(other, ENGINES.into_iter());
                return Err(format!(
                    "there is no library host {other:?}; did you mean {near}?"
                ));
            }
        };
        let options = Options::parse(&[COMMON, specs], rest)?;
        let data = PathBuf::from(options.text("data"));
        if named != "null" {
            if data.as_os_str().is_empty() {
                return Err("--data DIR is missing: the directory of the index".into());
            }
            std::fs::create_dir_all(&data).map_err(|error| {
                format!("cannot make the directory {}: {error}", data.display())
            })?;
        }
        let null = match named.as_str() {
            "null" => Some(null::Null::new(&options)?),
            _ => None,
        };
        let port = options.size("port") as u16;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, port))
            .map_err(|error| format!("cannot listen on 127.0.0.1:{port}: {error}"))?;
        let address = listener.local_addr().map_err(|error| error.to_string())?;
        // A connection that is gone before it is accepted must not block the others.
        listener
            .set_nonblocking(true)
            .map_err(|error| error.to_string())?;
        let wake =
            Arc::new(Wake::new().map_err(|error| format!("cannot make an eventfd: {error}"))?);
        let woken = Arc::clone(&wake);
        if let Some(null) = null {
            let thread = thread::spawn(move || null.serve(&listener, &woken));
            return Ok(Host {
                address,
                wake,
                thread,
            });
        }
        let engine: Arc<dyn Engine> = match named.as_str() {
            "tantivy" => tantivy::Tantivy::open(&data, &options)?,
            _ => sqlite::Sqlite::open(&data, &options)?,
        };
        let thread = thread::spawn(move || {
            serve::serve(&listener, Arc::clone(&engine), &woken);
            // Closing an index can wait for merges; the process is about to end anyway.
            std::mem::forget(engine);
        });
        Ok(Host {
            address,
            wake,
            thread,
        })
    }

    /// Stops it: requests in hand may end for half a second, nothing more is committed.
    pub fn stop(self) {
        self.wake.raise();
        let _ = self.thread.join();
    }
}

/// Be a library host until told to stop. `argv` without the program name, as FORMATS.md says:
/// `ENGINE --port P --data DIR [--name value ...]`. Returns the exit code: 0 after SIGTERM, 130
/// after SIGINT, 2 where an option is wrong or the host cannot start.
pub fn run(argv: Vec<String>) -> i32 {
    signal::raise_descriptor_limit();
    let host = match Host::start(&argv) {
        Ok(host) => host,
        Err(sentence) => {
            eprintln!("{sentence}");
            return 2;
        }
    };
    let handlers = Handlers::install(&host.wake);
    {
        use std::io::Write;
        let mut out = std::io::stdout();
        let _ = writeln!(out, "listening on {}", host.address).and_then(|()| out.flush());
    }
    let _ = host.thread.join();
    if handlers.caught() == libc::SIGINT {
        130
    } else {
        0
    }
}
