//! placeholder
use crate::options::{Options, Spec};
use crate::signal::Wake;
pub const OPTIONS: &[Spec] = &[];
pub struct Null;
impl Null {
    pub fn new(_: &Options) -> Null { Null }
    pub fn serve(&self, _: &std::net::TcpListener, _: &Wake) {}
}
