//! Logs that are hard to cut: entries of a format between all that may stand beside them.

use searchbench_fuzz::Random;
use searchbench_logs::format::Format;

use crate::samples::Samples;
use crate::short::entries;

/// Lines, and parts of lines, that belong to no entry, or look as if they began or ended one.
const BESIDE: [&str; 28] = [
    "",
    "\n",
    "\r\n",
    "\n\n\n",
    "what is this?\n",
    "; \n",
    "FROM p\n",
    "WHERE a = 'x;\n",
    "SELECT 1;\n",
    "# a comment\n",
    "# Time: 261122 10:52:14\n",
    "# Time: 2026-11-22T10:52:15.5Z\n",
    "# User@Host: a[a] @ h []\n",
    "# User@Host: a[a] @ h []  Id: 8\n",
    "# Thread_id: 19  Schema: w  QC_hit: No\n",
    "# Query_time: 0.5  Lock_time: 0  Rows_sent: 1  Rows_examined: 2\n",
    "use w;\nSET timestamp=1795312334;\n",
    "SET last_insert_id=5,timestamp=1795312334;\nSELECT a FROM p WHERE b = LAST_INSERT_ID();\n",
    "mariadbd, Version: 10.11.19-MariaDB (Debian 12). started with:\n",
    "Tcp port: 3317  Unix socket: /db.sock\nTime\t\t    Id Command\tArgument\n",
    "/* Sun Nov 22 02:59:00.970 2026 conn 5 real 0.001 wall 0.002 found 3 */ SELECT *\n",
    "/* Sun Nov 22 02:59:00.970 2026 conn 5 real x */ SELECT\n",
    "/* half\n",
    "2026-11-22 02:56:33.388 CET,\"a\n",
    "\"",
    "\"\"\n",
    "\tgoes on\n",
    "[Fri Nov 20 20:39:57.402 2026] half\n",
];

/// What an agent and its search write, and one that waits for no search.
const PLAIN_AGENTS: [&str; 3] = [
    "[Fri Nov 20 20:39:57.402 2026] 0.001 sec 0.001 sec [ext2/0/rel 9 (0,1000)] [part0] a b\n",
    "[Fri Nov 20 20:39:57.403 2026] 0.002 sec 0.002 sec [ext2/0/rel 9 (0,10)] [docs] a b\n",
    "[Fri Nov 20 20:40:57.402 2026] 0.001 sec 0.001 sec [ext2/0/rel 9 (0,1000)] [part0] c\n",
];
const QL_AGENTS: [&str; 3] = [
    "/* Sun Nov 22 02:59:00.970 2026 conn 5 real 0.001 wall 0.001 found 3 */ SELECT * FROM part0 WHERE \
     MATCH('a b') LIMIT 0,1000;\n",
    "/* Sun Nov 22 02:59:00.971 2026 conn 6 real 0.002 wall 0.002 found 3 */ SELECT * FROM docs\nWHERE \
     MATCH('a b')\n LIMIT 0,10;\n",
    "/* Sun Nov 22 02:59:01.970 2026 conn 5 real 0.001 wall 0.001 found 3 */ SELECT * FROM part0\n\nWHERE \
     MATCH('c') LIMIT 0,1000; /* agents=(1) */\n",
];

pub struct Nasty {
    own: Vec<&'static str>,
    others: Vec<&'static str>,
    samples: Samples,
}

impl Nasty {
    pub fn of(format: Format) -> Nasty {
        let mut own = entries(format).to_vec();
        match format {
            Format::SphinxPlain => own.extend(PLAIN_AGENTS),
            Format::SphinxQl => own.extend(QL_AGENTS),
            _ => {}
        }
        let others = Format::ALL.into_iter().filter(|&other| other != format);
        Nasty {
            own,
            others: others.flat_map(entries).copied().collect(),
            samples: Samples::of(format),
        }
    }

    /// A log of up to some thousand bytes.
    pub fn log(&self, random: &mut Random, out: &mut Vec<u8>) {
        out.clear();
        // Some logs are but a little spoiled, and some have little else.
        let spoiled = random.of_these(&[2, 3, 12]);
        let mut piece = Vec::new();
        for _ in 0..1 + random.below(24) {
            piece.clear();
            if !random.once_in(*spoiled) {
                piece.extend_from_slice(random.of_these(&self.own).as_bytes());
            } else {
                match random.below(5) {
                    0 => {
                        self.samples.spoiled(random, &mut piece);
                    }
                    1 => piece.extend_from_slice(random.of_these(&self.others).as_bytes()),
                    _ => piece.extend_from_slice(random.of_these(&BESIDE).as_bytes()),
                }
                if random.once_in(6) {
                    piece.truncate(random.below(piece.len() + 1));
                }
            }
            if random.once_in(12) {
                piece = String::from_utf8_lossy(&piece)
                    .replace('\n', "\r\n")
                    .into_bytes();
            }
            out.extend_from_slice(&piece);
        }
        if random.once_in(3) {
            out.truncate(random.below(out.len() + 1));
        }
    }
}
