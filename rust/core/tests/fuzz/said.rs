//! What servers say, in the bytes of each protocol: what seeds and whole replies are made of.

use searchbench_core::Login;
use searchbench_core::wire::{Greeting, Mysql, Wire};

pub fn login() -> Login {
    Login::new("me".into(), "secret".into(), "db".into()).expect("there is no NUL in it")
}

/// A frame of a library host.
pub fn frame(status: u8, host_ns: u64, payload: &[u8]) -> Vec<u8> {
    let length = (payload.len() as u32).to_le_bytes();
    [
        &length[..],
        &[status, 0, 0, 0],
        &host_ns.to_le_bytes(),
        payload,
    ]
    .concat()
}

/// Packets of the MySQL protocol, numbered from `first`.
pub fn packets(first: u8, bodies: &[&[u8]]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for (index, body) in bodies.iter().enumerate() {
        bytes.extend(&(body.len() as u32).to_le_bytes()[..3]);
        bytes.push(first.wrapping_add(index as u8));
        bytes.extend(*body);
    }
    bytes
}

/// The greeting of a MySQL server.
pub fn mysql_greeting(flags: u32, method: &str) -> Vec<u8> {
    let mut body = b"\x0a11.4.2-Server\0\x01\0\0\0abcdefgh\0".to_vec();
    body.extend((flags as u16).to_le_bytes());
    body.extend(b"\x2d\x02\0");
    body.extend(((flags >> 16) as u16).to_le_bytes());
    body.push(21);
    body.extend([0; 10]);
    body.extend(b"01234567890!\0");
    body.extend(method.as_bytes());
    body.push(0);
    packets(0, &[&body])
}

pub const MYSQL_FLAGS: u32 = 0xffff_ffff;
/// Without the flag by which rows end with an OK.
pub const OLD_FLAGS: u32 = MYSQL_FLAGS & !(1 << 24);
pub const NATIVE: &str = "mysql_native_password";
pub const OK: &[u8] = b"\0\0\0\x02\0\0\0";

/// A wire that a server has let in.
pub fn let_in(mut wire: Mysql, flags: u32) -> Mysql {
    let mut out = Vec::new();
    assert_eq!(wire.connected(&mut out), Greeting::More);
    let greeting = mysql_greeting(flags, NATIVE);
    assert_eq!(wire.greet(&greeting, &mut out), Greeting::More);
    assert_eq!(wire.greet(&packets(2, &[OK]), &mut out), Greeting::Ready);
    wire
}

/// Messages of the PostgreSQL protocol.
pub fn messages(each: &[(u8, &[u8])]) -> Vec<u8> {
    let message = |(kind, body): &(u8, &[u8])| {
        let length = (body.len() as u32 + 4).to_be_bytes();
        [&[*kind], &length[..], body].concat()
    };
    each.iter().flat_map(message).collect()
}

/// A reply of Sphinx's native API.
pub fn sphinx(status: u16, body: &[u8]) -> Vec<u8> {
    let length = (body.len() as u32).to_be_bytes();
    [&status.to_be_bytes()[..], b"\x01\x1f", &length, body].concat()
}
