//! mysql_async as a load generator: one statement after another on every connection.
//!
//! ```text
//! peer-mysql-async URL CONNECTIONS SECONDS FILE [STATEMENT]
//! ```
//!
//! The statements are the lines of FILE, drawn in order; every connection begins at another. With a
//! STATEMENT, that is prepared once on every connection, and the lines are its values, whole numbers
//! with a space between them. One thread, rows passed over unread: the leanest that the library
//! offers. Prints how many statements were answered.

use std::cell::Cell;
use std::num::ParseIntError;
use std::rc::Rc;
use std::time::{Duration, Instant};

use mysql_async::prelude::Queryable;
use mysql_async::{Conn, Opts, Params, Value};

type Failure = Box<dyn std::error::Error>;

/// What is asked, by line.
enum Asked {
    Texts(Vec<String>),
    Prepared { text: String, values: Vec<Vec<Value>> },
}

impl Asked {
    fn lines(&self) -> usize {
        match self {
            Asked::Texts(texts) => texts.len(),
            Asked::Prepared { values, .. } => values.len(),
        }
    }
}

fn main() -> Result<(), Failure> {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let (asked, words) = match words.as_slice() {
        [first @ .., file, statement] if words.len() == 5 => (prepared(statement, file)?, first),
        [first @ .., file] if words.len() == 4 => (texts(file)?, first),
        _ => {
            return Err("usage: peer-mysql-async URL CONNECTIONS SECONDS FILE [STATEMENT]".into());
        }
    };
    let (url, connections) = (&words[0], words[1].parse::<usize>()?);
    let seconds = words[2].parse::<f64>()?;
    if connections == 0 || asked.lines() == 0 {
        return Err("there must be a connection and a statement".into());
    }
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()?;
    let answered = tokio::task::LocalSet::new().block_on(
        &runtime,
        drive(Opts::from_url(url)?, connections, seconds, Rc::new(asked)),
    )?;
    println!("{answered}");
    Ok(())
}

fn texts(file: &str) -> Result<Asked, Failure> {
    let lines = std::fs::read_to_string(file)?;
    Ok(Asked::Texts(lines.lines().map(String::from).collect()))
}

fn prepared(statement: &str, file: &str) -> Result<Asked, Failure> {
    let values = std::fs::read_to_string(file)?
        .lines()
        .map(|line| {
            line.split(' ')
                .map(|number| Ok(Value::Int(number.parse()?)))
                .collect::<Result<Vec<Value>, ParseIntError>>()
        })
        .collect::<Result<Vec<Vec<Value>>, ParseIntError>>()?;
    let text = statement.to_owned();
    Ok(Asked::Prepared { text, values })
}

async fn drive(
    opts: Opts,
    connections: usize,
    seconds: f64,
    asked: Rc<Asked>,
) -> Result<u64, Failure> {
    let mut opened = Vec::new();
    for _ in 0..connections {
        let mut conn = Conn::new(opts.clone()).await?;
        let statement = match &*asked {
            Asked::Texts(_) => None,
            Asked::Prepared { text, .. } => Some(conn.prep(text.as_str()).await?),
        };
        opened.push((conn, statement));
    }
    let answered = Rc::new(Cell::new(0));
    let until = Instant::now() + Duration::from_secs_f64(seconds);
    let tasks: Vec<_> = opened
        .into_iter()
        .enumerate()
        .map(|(index, (mut conn, statement))| {
            let (asked, answered) = (Rc::clone(&asked), Rc::clone(&answered));
            tokio::task::spawn_local(async move {
                let mut at = index * asked.lines() / connections;
                while Instant::now() < until {
                    match (&*asked, &statement) {
                        (Asked::Prepared { values, .. }, Some(statement)) => {
                            let values = Params::Positional(values[at].clone());
                            conn.exec_drop(statement.clone(), values).await?;
                        }
                        (Asked::Texts(texts), _) => conn.query_drop(texts[at].as_str()).await?,
                        (Asked::Prepared { .. }, None) => unreachable!("it was prepared above"),
                    }
                    answered.set(answered.get() + 1);
                    at = (at + 1) % asked.lines();
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
