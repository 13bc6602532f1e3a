//! The library hosts without Python, for tests and benchmarks.

fn main() {
    std::process::exit(searchbench_hosts::run(std::env::args().skip(1).collect()));
}
