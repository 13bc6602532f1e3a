//! mysql_async as a load generator: one statement after another on every connection.
//!
//! ```text
//! peer-mysql-async URL CONNECTIONS SECONDS FILE
//! ```
//!
//! The statements are the lines of FILE, drawn in order; every connection begins at another. Text
//! protocol, one thread, rows passed over unread: the leanest that the library offers. Prints how
//! many statements were answered.

use std::cell::Cell;
use std::rc::Rc;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts};

type Failure = Box<dyn std::error::Error>;

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let [url, connections, seconds, file] = words.as_slice() else {
        return Err("usage: peer-mysql-async URL CONNECTIONS SECONDS FILE".into());
    };
    let (connections, seconds) = (connections.parse::<usize>()?, seconds.parse::<f64>()?);
    let statements: Vec<String> = std::fs::read_to_string(file)?
        .lines()
        .map(String::from)
        .collect();
    if connections == 0 || statements.is_empty() {
        return Err("there must be a connection and a statement".into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let answered = tokio::task::LocalSet::new().block_on(
        &runtime,
        drive(
            Opts::from_url(url)?,
            connections,
            seconds,
            statements.into(),
        ),
    )?;
    println!("{answered}");
    Ok(())
}

async fn drive(
    opts: Opts,
    connections: usize,
    seconds: f64,
    statements: Rc<[String]>,
) -> Result<u64, Failure> {
    let mut opened = Vec::new();
    for _ in 0..connections {
        opened.push(Conn::new(opts.clone()).await?);
    }
    let answered = Rc::new(Cell::new(0));
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let tasks: Vec<_> = opened
        .into_iter()
        .enumerate()
        .map(|(index, mut conn)| {
            let (statements, answered) = (Rc::clone(&statements), Rc::clone(&answered));
            tokio::task::spawn_local(async move {
                let mut at = index * statements.len() / connections;
                while Instant::now() < until {
                    conn.query_drop(statements[at].as_str()).await?;
                    answered.set(answered.get() + 1);
                    at = (at + 1) % statements.len();
                }
                conn.disconnect().await
            })
        })
        .collect();
    for task in tasks {
        task.await??;
    }
    Ok(answered.get())
}
