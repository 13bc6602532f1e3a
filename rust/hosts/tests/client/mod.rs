//! A small blocking client, and hosts that are stopped when a test is done with them.
#![allow(dead_code)] // Each test binary uses its own part of this.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use searchbench_hosts::Host;
use serde_json::{Value, json};

pub const FACTS: u8 = 1;
pub const CREATE: u8 = 2;
pub const BATCH: u8 = 3;
pub const SETTLE: u8 = 4;
pub const QUERY: u8 = 5;
pub const ANALYSE: u8 = 6;
pub const COMMIT: u8 = 7;
pub const REPLACE: u8 = 8;
pub const DELETE: u8 = 9;

/// A directory that is removed when dropped.
pub struct Directory(pub PathBuf);

impl Directory {
    pub fn new() -> Directory {
        static COUNT: AtomicU32 = AtomicU32::new(0);
        let name = format!(
            "searchbench-hosts-{}-{}",
            std::process::id(),
            COUNT.fetch_add(1, Ordering::Relaxed)
        );
        let path = std::env::temp_dir().join(name);
        std::fs::create_dir_all(&path).unwrap();
        Directory(path)
    }
}

impl Drop for Directory {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// A host in this process.
pub struct Running(Option<Host>);

impl Running {
    pub fn start(engine: &str, data: &Path, options: &[&str]) -> Running {
        Running::try_start(engine, data, options).unwrap()
    }

    pub fn try_start(engine: &str, data: &Path, options: &[&str]) -> Result<Running, String> {
        let mut argv = vec![
            engine.to_owned(),
            "--port".into(),
            "0".into(),
            "--data".into(),
        ];
        argv.push(data.to_str().unwrap().into());
        argv.extend(options.iter().map(|&word| word.to_owned()));
        Ok(Running(Some(Host::start(&argv)?)))
    }

    pub fn address(&self) -> SocketAddr {
        self.0.as_ref().unwrap().address
    }

    pub fn client(&self) -> Client {
        Client::connect(self.address())
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(host) = self.0.take() {
            host.stop();
        }
    }
}

/// One reply.
#[derive(Debug, PartialEq)]
pub struct Reply {
    pub status: u8,
    pub host_ns: u64,
    pub payload: Vec<u8>,
}

impl Reply {
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.payload).unwrap()
    }
    pub fn error(&self) -> String {
        assert_ne!(
            self.status,
            0,
            "{:?}",
            String::from_utf8_lossy(&self.payload)
        );
        self.json()["error"].as_str().unwrap().to_owned()
    }
}

pub fn frame(verb: u8, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (payload.len() as u32).to_le_bytes().to_vec();
    bytes.extend_from_slice(&[verb, 0, 0, 0]);
    bytes.extend_from_slice(payload);
    bytes
}

pub struct Client(pub TcpStream);

impl Client {
    pub fn connect(address: SocketAddr) -> Client {
        let stream = TcpStream::connect(address).unwrap();
        stream.set_nodelay(true).unwrap();
        stream
            .set_read_timeout(Some(std::time::Duration::from_secs(60)))
            .unwrap();
        Client(stream)
    }

    pub fn send(&mut self, bytes: &[u8]) {
        self.0.write_all(bytes).unwrap();
    }

    pub fn receive(&mut self) -> std::io::Result<Reply> {
        let mut header = [0; 16];
        self.0.read_exact(&mut header)?;
        let length = u32::from_le_bytes(header[..4].try_into().unwrap()) as usize;
        let mut payload = vec![0; length];
        self.0.read_exact(&mut payload)?;
        let host_ns = u64::from_le_bytes(header[8..].try_into().unwrap());
        Ok(Reply {
            status: header[4],
            host_ns,
            payload,
        })
    }

    pub fn ask(&mut self, verb: u8, payload: &[u8]) -> Reply {
        self.send(&frame(verb, payload));
        self.receive().unwrap()
    }

    /// Status 0 or the test fails.
    pub fn must(&mut self, verb: u8, payload: &Value) -> Value {
        let text = if payload.is_null() {
            String::new()
        } else {
            payload.to_string()
        };
        let reply = self.ask(verb, text.as_bytes());
        assert_eq!(
            reply.status,
            0,
            "{payload}: {}",
            String::from_utf8_lossy(&reply.payload)
        );
        reply.json()
    }

    pub fn query(&mut self, query: &Value) -> Value {
        self.must(QUERY, query)
    }

    pub fn batch(&mut self, documents: &[Value]) -> Value {
        let lines: Vec<String> = documents.iter().map(Value::to_string).collect();
        let reply = self.ask(BATCH, lines.join("\n").as_bytes());
        assert_eq!(
            reply.status,
            0,
            "{}",
            String::from_utf8_lossy(&reply.payload)
        );
        reply.json()
    }

    pub fn settle(&mut self) {
        self.must(SETTLE, &json!({}));
    }
}

/// A generator whose numbers are the same in every run.
pub struct Random(pub u64);

impl Random {
    pub fn below(&mut self, limit: usize) -> usize {
        // splitmix64
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94D0_49BB_1331_11EB);
        ((mixed ^ mixed >> 31) % limit as u64) as usize
    }
    pub fn chance(&mut self, one_in: usize) -> bool {
        self.below(one_in) == 0
    }
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[self.below(from.len())]
    }
}
