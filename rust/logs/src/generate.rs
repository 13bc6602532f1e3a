//! Writes a plain log of Sphinx with the marginals that were published for 453 million queries of 15
//! servers with 180 indexes: 60 % of the times within 10 ms, 80 % within 0.1 s, 99 % within 0.5 s, in
//! three bands (below 1 ms, 0.03 s, 0.3 s); few words fastest, 6 to 50 slowest; larger indexes slower.
//!
//! What was not published is ours: the shares of the bands (they follow from the three quantiles),
//! their widths, how many words searches have, how often queries come back (a Zipf law over
//! `distinct` queries), and how the day goes.

use std::io::{self, Write};

/// What is written. `start_s`: the time of the first line, in seconds since 1970, of no zone.
#[derive(Clone, Copy, Debug)]
pub struct Plan {
    pub lines: u64,
    pub server: u64,
    pub indexes: u64,
    pub distinct: u64,
    pub seed: u64,
    pub start_s: i64,
    pub per_s: f64,
}

/// Shares of the bands, as `60 % within 0.01 s, 80 % within 0.1 s, 99 % within 0.5 s` asks for, and
/// of each the decade of its middle (of milliseconds) and its spread in decades.
const BANDS: [(f64, f64, f64); 3] = [
    (0.595, -0.25, 0.35),
    (0.208, 1.477, 0.25),
    (0.197, 2.477, 0.133),
];

/// Makes the two factors below, of words and of indexes, 1 on average.
const EVEN: f64 = 1.254;

/// SplitMix64: the same numbers everywhere.
struct Draw(u64);

impl Draw {
    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// In 0..1.
    fn unit(&mut self) -> f64 {
        (self.bits() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Roughly normal: the sum of four, which ends at 3.5 deviations.
    fn normal(&mut self) -> f64 {
        let bits = self.bits();
        let sum: u64 = (0..4).map(|i| (bits >> (16 * i)) & 0xffff).sum();
        (sum as f64 / 65_536.0 - 2.0) * 3f64.sqrt()
    }
}

/// How many words a query has, by its number: 1 to 4 mostly, some up to 50, few above.
fn words_of(query: u64) -> u64 {
    let bits = Draw(query ^ 0x5bd1).bits();
    match bits % 1000 {
        0..300 => 1,
        300..600 => 2,
        600..790 => 3,
        790..900 => 4,
        900..940 => 5,
        940..992 => 6 + (bits >> 20) % 45,
        _ => 51 + (bits >> 20) % 30,
    }
}

/// How much more often than others a query of so many words is in the slowest band.
fn by_words(words: u64) -> f64 {
    match words {
        1..=4 => 0.85,
        5 => 1.2,
        6..=50 => 2.6,
        _ => 1.1,
    }
}

/// The same by index, of which the later ones are larger: 1 to 100 MB.
fn by_index(index: u64, indexes: u64) -> f64 {
    0.5 + index as f64 / indexes.max(1) as f64
}

/// The name of an index, as the log writes it.
pub fn index_name(index: u64) -> String {
    format!("idx{index:03}")
}

/// Bytes of an index, as the list of sizes beside the logs says: 1 MB to 100 MB, evenly by decade.
pub fn index_bytes(index: u64, indexes: u64) -> u64 {
    10f64.powf(6.0 + 2.0 * index as f64 / indexes.max(1) as f64) as u64
}

const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
const MONTHS: [&str; 12] = [
    "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec",
];
const SYLLABLES: [&[u8]; 16] = [
    b"ka", b"ri", b"to", b"mel", b"os", b"un", b"da", b"vi", b"pra", b"lo", b"si", b"ter", b"no",
    b"gu", b"an", b"be",
];

/// `[Fri Nov 20 20:39:57.` and ` 2026]` of a second.
fn stamp(second: i64, head: &mut Vec<u8>, year: &mut Vec<u8>) {
    let (day, of_day) = (second.div_euclid(86_400), second.rem_euclid(86_400));
    // Civil from days (Hinnant).
    let z = day + 719_468;
    let era = z.div_euclid(146_097);
    let doe = z - era * 146_097;
    let yoe = (doe - doe / 1460 + doe / 36_524 - doe / 146_096) / 365;
    let doy = doe - (365 * yoe + yoe / 4 - yoe / 100);
    let mp = (5 * doy + 2) / 153;
    let (d, m) = (
        doy - (153 * mp + 2) / 5 + 1,
        if mp < 10 { mp + 3 } else { mp - 9 },
    );
    let y = yoe + era * 400 + i64::from(m <= 2);
    head.clear();
    year.clear();
    let weekday = DAYS[day.rem_euclid(7) as usize];
    let month = MONTHS[m as usize - 1];
    let (h, min, s) = (of_day / 3600, of_day / 60 % 60, of_day % 60);
    let _ = write!(head, "[{weekday} {month} {d:>2} {h:02}:{min:02}:{s:02}.");
    let _ = write!(year, " {y}] ");
}

fn digits(out: &mut Vec<u8>, mut value: u64, least: usize) {
    let mut held = [0u8; 20];
    let mut at = held.len();
    while value > 0 || held.len() - at < least {
        at -= 1;
        held[at] = b'0' + (value % 10) as u8;
        value /= 10;
    }
    out.extend_from_slice(&held[at..]);
}

/// Writes the lines of one server.
pub fn plain(plan: &Plan, out: &mut impl Write) -> io::Result<()> {
    let mut draw = Draw(plan.seed ^ (plan.server << 32));
    let mut lines: Vec<u8> = Vec::with_capacity(1 << 20);
    let names: Vec<String> = (0..plan.indexes.max(1)).map(index_name).collect();
    let (mut head, mut year) = (Vec::new(), Vec::new());
    let mut at_ms = plan.start_s * 1000;
    let mut second = i64::MIN;
    let mut rest = 0.0f64;
    for _ in 0..plan.lines {
        // The rate goes with the day: least at four in the morning.
        let hour = at_ms.div_euclid(3_600_000).rem_euclid(24);
        let busy =
            [0.5, 0.3, 0.25, 0.22, 0.2, 0.3, 0.5, 0.8, 1.1, 1.4, 1.5, 1.5][hour as usize / 2];
        rest += -1000.0 / (plan.per_s * busy) * (1.0 - draw.unit()).ln();
        at_ms += rest as i64;
        rest = rest.fract();
        if at_ms.div_euclid(1000) != second {
            second = at_ms.div_euclid(1000);
            stamp(second, &mut head, &mut year);
        }
        // A power of the unit draws low numbers often, about as Zipf's law does.
        let query = ((plan.distinct as f64).powf(draw.unit()) - 1.0) as u64;
        let words = words_of(query);
        let u = draw.unit();
        let index = (u * u * plan.indexes as f64) as u64;
        let slow = (BANDS[2].0 * by_words(words) * by_index(index, plan.indexes) * EVEN).min(0.9);
        let middle = BANDS[1].0 * (1.0 - slow) / (1.0 - BANDS[2].0);
        let u = draw.unit();
        let (_, decade, spread) = BANDS[if u < slow {
            2
        } else if u < slow + middle {
            1
        } else {
            0
        }];
        let ms = 10f64.powf(decade + spread * draw.normal()) as u64;
        let found = if query % 19 == 7 {
            0
        } else {
            1 + Draw(query).bits() % 20_000 / (words * words)
        };
        lines.extend_from_slice(&head);
        digits(&mut lines, at_ms.rem_euclid(1000) as u64, 3);
        lines.extend_from_slice(&year);
        digits(&mut lines, ms / 1000, 1);
        lines.push(b'.');
        digits(&mut lines, ms % 1000, 3);
        lines.extend_from_slice(b" sec [all/0/rel ");
        digits(&mut lines, found, 1);
        lines.extend_from_slice(b" (0,20)] [");
        lines.extend_from_slice(names[index as usize].as_bytes());
        lines.push(b']');
        let mut letters = Draw(query.wrapping_mul(31));
        for _ in 0..words {
            lines.extend_from_slice(b" ");
            let bits = letters.bits();
            for part in 0..2 + bits % 2 {
                lines.extend_from_slice(SYLLABLES[(bits >> (8 + 4 * part)) as usize & 15]);
            }
        }
        lines.push(b'\n');
        if lines.len() > (1 << 20) - 8192 {
            out.write_all(&lines)?;
            lines.clear();
        }
    }
    out.write_all(&lines)?;
    out.flush()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_published_quantiles_come_out() {
        let plan = Plan {
            lines: 200_000,
            server: 0,
            indexes: 180,
            distinct: 1_000_000,
            seed: 1,
            start_s: 1_215_000_000,
            per_s: 50.0,
        };
        let mut text = Vec::new();
        plain(&plan, &mut text).unwrap();
        let mut within = [0u32; 3];
        for line in text.split(|&b| b == b'\n').filter(|l| !l.is_empty()) {
            let line = std::str::from_utf8(line).unwrap();
            let ms: f64 = line
                .split("] ")
                .nth(1)
                .unwrap()
                .split(' ')
                .next()
                .unwrap()
                .parse()
                .unwrap();
            for (n, limit) in within.iter_mut().zip([0.01, 0.1, 0.5]) {
                *n += u32::from(ms <= limit);
            }
        }
        for (n, published) in within.iter().zip([0.60, 0.80, 0.99]) {
            let share = f64::from(*n) / 200_000.0;
            assert!((share - published).abs() < 0.015, "{within:?}");
        }
    }
}
