//! No bytes of a server end a wire, and none are taken differently for how they are cut: replies and
//! logins as servers really write them, spoiled (`searchbench_fuzz` says how, and how many), and
//! whole ones made by proptest.

mod logins;
mod replies;
mod said;
mod whole;

#[global_allocator]
static METER: searchbench_fuzz::Meter = searchbench_fuzz::Meter;
