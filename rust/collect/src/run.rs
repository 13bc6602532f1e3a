//! A collector from its configuration file to its end.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::time::Duration;

use signal_hook::consts::{SIGHUP, SIGINT, SIGTERM};
use signal_hook::iterator::Signals;

use crate::collector::{Collector, Command, count_lost};
use crate::conf::{Mistake, Settings, read};
use crate::counters::Counters;
use crate::ledger::Ledger;
use crate::route::{Router, Shared};
use crate::server::{Server, listen};
use crate::sys::raise_descriptor_limit;

/// Why it does not run, or has not ended well.
#[derive(Debug)]
pub enum Trouble {
    /// The file and what is wrong in it.
    Mistakes(PathBuf, Vec<Mistake>),
    /// One sentence.
    Failed(String),
}

/// The configuration at this path, with its mistakes.
pub fn check(path: &Path) -> Result<(Settings, Vec<Mistake>), String> {
    let bytes = fs::read(path).map_err(|error| format!("{}: {error}", path.display()))?;
    let text = String::from_utf8(bytes).map_err(|error| {
        let line = error.as_bytes()[..error.utf8_error().valid_up_to()]
            .iter()
            .filter(|byte| **byte == b'\n')
            .count();
        format!(
            "{}:{}: this line is not UTF-8; convert the file to UTF-8",
            path.display(),
            line + 1
        )
    })?;
    Ok(read(&text))
}

/// The settings; what has no effect is said, what is wrong ends it.
fn load(path: &Path) -> Result<Settings, Trouble> {
    let (settings, mistakes) = check(path).map_err(Trouble::Failed)?;
    if mistakes.iter().any(|mistake| mistake.fatal) {
        return Err(Trouble::Mistakes(path.into(), mistakes));
    }
    for mistake in mistakes {
        eprintln!("searchbench collect: {}: {mistake}", path.display());
    }
    Ok(settings)
}

/// Serves until it is told to stop, by SIGTERM, SIGINT or a client's `shutdown`. `host` and `port`
/// come before those of the file.
pub fn serve(path: &Path, host: Option<&str>, port: Option<u16>) -> Result<(), Trouble> {
    let mut settings = load(path)?;
    raise_descriptor_limit();
    if let Some(host) = host {
        settings.host = Some(host.into());
    }
    if let Some(port) = port {
        settings.port = port;
    }
    let listener = listen(settings.host.as_deref(), settings.port).map_err(Trouble::Failed)?;
    let state = settings.state_path.clone().unwrap_or_else(|| beside(path));
    let (ledger, lost) = Ledger::open(&state).map_err(Trouble::Failed)?;
    let shared = Shared {
        counters: Arc::new(Counters::default()),
        ledger: Arc::new(ledger),
    };
    count_lost(&shared, &lost);

    let (commands, told) = channel();
    let mut signals = Signals::new([SIGTERM, SIGINT, SIGHUP])
        .map_err(|error| Trouble::Failed(format!("signals cannot be caught: {error}")))?;
    let signals_end = signals.handle();
    let by_signal = commands.clone();
    let waiting = std::thread::spawn(move || {
        for signal in signals.forever() {
            let reload = signal == SIGHUP;
            let _ = by_signal.send(if reload {
                Command::Reload
            } else {
                Command::Stop
            });
        }
    });

    let (threads, max_conn) = (settings.threads, settings.max_conn);
    let router = Router::new(settings, shared.clone());
    let collector = Arc::new(Collector::new(router, shared, commands));
    let mut saved = collector.inherit().map_err(Trouble::Failed)?;
    collector.start().map_err(Trouble::Failed)?;
    let server = Server::start(listener, &collector, threads, max_conn)
        .map_err(|error| Trouble::Failed(format!("cannot serve: {error}")))?;
    println!("listening on {}", server.address);

    loop {
        match told.recv_timeout(Duration::from_secs(1)) {
            Ok(Command::Stop) | Err(RecvTimeoutError::Disconnected) => break,
            Ok(Command::Reload) => reload(&collector, path),
            Err(RecvTimeoutError::Timeout) => {}
        }
        if !saved.is_empty() && collector.settled() {
            for file in std::mem::take(&mut saved) {
                let _ = fs::remove_file(file);
            }
        }
    }
    let ended = collector.stop().map_err(Trouble::Failed);
    server.stop();
    if collector.settled() {
        saved
            .into_iter()
            .for_each(|file| drop(fs::remove_file(file)));
    }
    signals_end.close();
    let _ = waiting.join();
    ended
}

/// A configuration with a mistake changes nothing, and is complained of in the status.
fn reload(collector: &Collector, path: &Path) {
    match load(path) {
        Ok(settings) => match collector.reload(settings) {
            Ok(()) => eprintln!(
                "searchbench collect: now works by the new {}",
                path.display()
            ),
            Err(why) => collector.complain(why),
        },
        Err(Trouble::Mistakes(path, mistakes)) => {
            let fatal: Vec<_> = mistakes.iter().filter(|mistake| mistake.fatal).collect();
            let first = fatal
                .first()
                .map(|mistake| mistake.to_string())
                .unwrap_or_default();
            let count = match fatal.len() {
                1 => "1 mistake".into(),
                count => format!("{count} mistakes"),
            };
            collector.complain(format!(
                "{}: {count}, so the earlier configuration is kept: {first}",
                path.display()
            ));
        }
        Err(Trouble::Failed(why)) => collector.complain(why),
    }
}

/// Where state goes if the configuration does not say: `FILE.state`.
fn beside(path: &Path) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".state");
    name.into()
}
