//! Threads that wait for their connections and serve them.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use mio::net::TcpListener as Listener;
use mio::{Events, Interest, Poll, Token, Waker};

use crate::collector::Collector;
use crate::conn::{Connection, Desk};
use crate::sys::EndsAll;
use crate::ticket::{Asker, Mailbox};

const LISTENER: Token = Token(usize::MAX);
const WAKER: Token = Token(usize::MAX - 1);

/// Read at once, for all connections of a thread.
const INPUT_BYTES: usize = 256 << 10;

/// How long clients may take to fetch their last answers.
const LAST_ANSWERS: Duration = Duration::from_secs(2);

const LOOPBACK: &str = "127.0.0.1";

pub struct Server {
    pub address: SocketAddr,
    stop: Arc<AtomicBool>,
    mailboxes: Vec<Arc<Mailbox>>,
    threads: Vec<JoinHandle<()>>,
}

/// Where none is given, this machine alone: whoever can connect can also send `shutdown`.
pub fn listen(host: Option<&str>, port: u16) -> Result<TcpListener, String> {
    let bind = |host: &str| {
        let addresses: Vec<_> = (host, port).to_socket_addrs()?.collect();
        TcpListener::bind(&addresses[..])
    };
    let host = host.unwrap_or(LOOPBACK);
    bind(host).map_err(|error| {
        format!("cannot listen at {host}:{port}: {error}; give another port with -p PORT")
    })
}

impl Server {
    pub fn start(
        listener: TcpListener,
        collector: &Arc<Collector>,
        threads: usize,
        max_conn: usize,
    ) -> io::Result<Server> {
        let address = listener.local_addr()?;
        listener.set_nonblocking(true)?;
        let stop = Arc::new(AtomicBool::new(false));
        let open = Arc::new(AtomicU64::new(0));
        let mut server = Server {
            address,
            stop,
            mailboxes: Vec::new(),
            threads: Vec::new(),
        };
        for number in 0..threads {
            let poll = Poll::new()?;
            let mailbox = Arc::new(Mailbox::new(Waker::new(poll.registry(), WAKER)?));
            let mut listener = Listener::from_std(listener.try_clone()?);
            poll.registry()
                .register(&mut listener, LISTENER, Interest::READABLE)?;
            let reactor = Reactor {
                poll,
                listener: Some(listener),
                desk: Desk {
                    collector: collector.clone(),
                    mailbox: mailbox.clone(),
                    input: vec![0; INPUT_BYTES],
                    entries: Vec::new(),
                    runs: Vec::new(),
                },
                connections: Vec::new(),
                free: Vec::new(),
                generation: 0,
                again: Vec::new(),
                letters: Vec::new(),
                open: open.clone(),
                max_conn,
                stop: server.stop.clone(),
            };
            server.mailboxes.push(mailbox);
            let thread = std::thread::Builder::new().name(format!("connections {number}"));
            server.threads.push(thread.spawn(move || reactor.run())?);
        }
        Ok(server)
    }

    /// No more connections; those that are open get the answers that they wait for.
    pub fn stop(self) {
        self.stop.store(true, Ordering::Release);
        self.mailboxes.iter().for_each(|mailbox| mailbox.wake());
        for thread in self.threads {
            let _ = thread.join();
        }
    }
}

struct Reactor {
    poll: Poll,
    listener: Option<Listener>,
    desk: Desk,
    connections: Vec<Option<Connection>>,
    free: Vec<usize>,
    generation: u64,
    /// Connections that were left before they had nothing more to read.
    again: Vec<usize>,
    letters: Vec<(Asker, bool)>,
    /// Of all reactors.
    open: Arc<AtomicU64>,
    max_conn: usize,
    stop: Arc<AtomicBool>,
}

impl Reactor {
    fn run(mut self) {
        let _all = EndsAll;
        let mut events = Events::with_capacity(1024);
        let mut accept_at: Option<Instant> = None;
        let mut until: Option<Instant> = None;
        loop {
            let pause = if !self.again.is_empty() {
                Some(Duration::ZERO)
            } else if accept_at.is_some() || until.is_some() {
                Some(Duration::from_millis(20))
            } else {
                None
            };
            match self.poll.poll(&mut events, pause) {
                Err(error) if error.kind() != io::ErrorKind::Interrupted => return,
                _ => {}
            }
            for index in std::mem::take(&mut self.again) {
                self.serve(index);
            }
            for event in &events {
                match event.token() {
                    LISTENER => accept_at = Some(Instant::now()),
                    WAKER => {}
                    Token(index) => {
                        if let Some(Some(connection)) = self.connections.get_mut(index) {
                            connection.unread |= event.is_readable() || event.is_read_closed();
                            self.serve(index);
                        }
                    }
                }
            }
            if accept_at.is_some_and(|at| Instant::now() >= at) {
                accept_at = self.accept().err();
            }
            self.tell();
            if self.stop.load(Ordering::Acquire) {
                self.listener = None;
                accept_at = None;
                let until = *until.get_or_insert_with(|| Instant::now() + LAST_ANSWERS);
                let mut all = self.connections.iter().flatten();
                if all.all(Connection::is_done) || Instant::now() > until {
                    return;
                }
            }
        }
    }

    /// Accepts all who wait. Err: descriptors are used up; when to try again.
    fn accept(&mut self) -> Result<(), Instant> {
        loop {
            let Some(listener) = &self.listener else {
                return Ok(());
            };
            let stream = match listener.accept() {
                Ok((stream, _)) => stream,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::ConnectionAborted => continue,
                Err(_) => return Err(Instant::now() + Duration::from_millis(100)),
            };
            let open = self.open.fetch_add(1, Ordering::Relaxed) + 1;
            if self.max_conn > 0 && open > self.max_conn as u64 {
                self.open.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            self.count(open);
            let index = self.free.pop().unwrap_or_else(|| {
                self.connections.push(None);
                self.connections.len() - 1
            });
            self.generation += 1;
            let mut connection = Connection::new(stream, index, self.generation);
            let both = Interest::READABLE | Interest::WRITABLE;
            let registry = self.poll.registry();
            if registry
                .register(&mut connection.stream, Token(index), both)
                .is_err()
            {
                self.free.push(index);
                self.open.fetch_sub(1, Ordering::Relaxed);
                continue;
            }
            self.connections[index] = Some(connection);
            self.serve(index);
        }
    }

    fn count(&self, open: u64) {
        self.desk
            .collector
            .shared
            .counters
            .connections
            .store(open, Ordering::Relaxed);
    }

    fn serve(&mut self, index: usize) {
        let Some(Some(connection)) = self.connections.get_mut(index) else {
            return;
        };
        if !connection.turn(&mut self.desk) {
            return self.close(index);
        }
        if connection.is_waiting_for_turn() {
            self.again.push(index);
        }
    }

    fn close(&mut self, index: usize) {
        if let Some(mut connection) = self.connections[index].take() {
            let _ = self.poll.registry().deregister(&mut connection.stream);
            self.free.push(index);
            let before = self.open.fetch_sub(1, Ordering::Relaxed);
            self.count(before - 1);
        }
    }

    /// Passes on what stores say.
    fn tell(&mut self) {
        let mut letters = std::mem::take(&mut self.letters);
        self.desk.mailbox.take(&mut letters);
        for (asker, kept) in letters.drain(..) {
            let Some(Some(connection)) = self.connections.get_mut(asker.connection) else {
                continue;
            };
            if connection.told(asker, kept) {
                self.serve(asker.connection);
            }
        }
        self.letters = letters;
    }
}
