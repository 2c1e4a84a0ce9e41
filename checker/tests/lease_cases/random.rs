//! Small histories made by chance: clients acquire, extend, are renewed, release, and lose what they have.

use checker::Answer::{self, Unknown};

use crate::history::Told;
use crate::naive;

const HISTORIES: u64 = 3_000;
/// Splitmix64 (Steele, Lea, Flood, "Fast splittable pseudorandom number generators", 2014).
struct Random(u64);

impl Random {
    fn below(&mut self, limit: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % limit
    }

    fn one_in(&mut self, so_many: u64) -> bool {
        self.below(so_many) == 0
    }
}

#[derive(Clone, Default)]
struct Client {
    in_flight: Option<(&'static str, u64, u64)>,
    grant: Option<u64>,
    gone: bool,
    /// When it did something last.
    acted: u64,
    /// Whether that was that its grant came.
    arrived: bool,
}

/// A history of two or three clients.
struct World {
    random: Random,
    text: String,
    now: u64,
    op: u64,
    clients: Vec<Client>,
    /// In how many cases a busy lock is granted nonetheless, of a hundred.
    careless: u64,
    /// Who was granted the lock last, and until when that may be.
    held_until: u64,
}

impl World {
    fn new(seed: u64) -> World {
        let mut random = Random(seed);
        let clients = 2 + random.below(2) as usize;
        let careless = [5, 30][random.below(2) as usize];
        World {
            random,
            text: String::new(),
            now: 10,
            op: 0,
            clients: vec![Client::default(); clients],
            careless,
            held_until: 0,
        }
    }

    fn tell(&mut self, at: usize, what: &str) {
        self.clients[at].acted = self.now;
        self.clients[at].arrived = what.contains("acquire") && what.contains(" ok ");
        self.text += &format!("{} c{} {what}\n", self.now, at + 1);
    }

    fn step(&mut self) {
        // Several things happen at one instant now and then.
        if !self.random.one_in(5) {
            self.now += 1 + self.random.below(12);
        }
        let at = self.random.below(self.clients.len() as u64) as usize;
        if self.clients[at].gone {
            return;
        }
        // To one client only what ends a grant at the instant at which it comes.
        let gap = u64::from(!self.clients[at].arrived || self.random.one_in(2));
        self.now = self.now.max(self.clients[at].acted + gap);
        match self.clients[at].in_flight.take() {
            Some((f, op, invoked)) => self.complete(at, f, op, invoked),
            None => self.begin(at),
        }
    }

    fn begin(&mut self, at: usize) {
        self.op += 1;
        let op = self.op;
        let grant = self.clients[at].grant.filter(|_| !self.random.one_in(12));
        let Some(grant) = grant else {
            self.tell(at, &format!("acquire#{op}"));
            self.clients[at].in_flight = Some(("acquire", op, self.now));
            return;
        };
        match self.random.below(8) {
            0 => self.tell(at, &format!("lost#{op} info grant={grant}")),
            1 => {
                let validity = self.validity();
                self.tell(
                    at,
                    &format!("renewed#{op} info grant={grant} validity={validity}"),
                );
            }
            2..=4 => {
                let ttl = match self.random.below(3) {
                    0 => String::new(),
                    _ => format!(" ttl_ms={}", 3 + self.random.below(40)),
                };
                self.tell(at, &format!("extend#{op} grant={grant}{ttl}"));
                self.clients[at].in_flight = Some(("extend", op, self.now));
            }
            _ => {
                self.tell(at, &format!("release#{op} grant={grant}"));
                self.clients[at].in_flight = Some(("release", op, self.now));
            }
        }
    }

    fn validity(&mut self) -> u64 {
        self.now + 1 + self.random.below(40)
    }

    fn complete(&mut self, at: usize, f: &'static str, op: u64, invoked: u64) {
        if self.random.one_in(25) {
            self.clients[at].gone = true; // Nobody hears of it again.
            return;
        }
        if self.random.one_in(8) {
            return self.tell(at, &format!("{f}#{op} info"));
        }
        match f {
            "acquire" => self.complete_acquire(at, op, invoked),
            _ if self.random.one_in(4) => {
                let lost = ["", " lost=true"][self.random.below(2) as usize];
                self.tell(at, &format!("{f}#{op} fail error=x{lost}"));
            }
            "extend" => {
                let validity = invoked + 1 + self.random.below(45);
                self.held_until = self.held_until.max(validity);
                self.tell(at, &format!("extend#{op} ok validity={validity}"));
            }
            _ => {
                self.held_until = self.now;
                self.tell(at, &format!("release#{op} ok"));
                self.clients[at].grant = None;
            }
        }
    }

    fn complete_acquire(&mut self, at: usize, op: u64, invoked: u64) {
        if self.now < self.held_until && self.random.below(100) >= self.careless {
            return self.tell(at, &format!("acquire#{op} fail error=busy"));
        }
        let validity = invoked + 1 + self.random.below(50);
        self.held_until = validity;
        self.clients[at].grant = Some(op);
        self.tell(at, &format!("acquire#{op} ok validity={validity}"));
    }
}

fn history(seed: u64) -> String {
    let mut world = World::new(seed);
    let steps = 8 + world.random.below(22);
    (0..steps).for_each(|_| world.step());
    world.text
}

#[test]
fn every_judge_says_the_same_of_histories_made_by_chance() {
    let mut said = [0_u64; 2];
    let (mut tried, mut streamed) = (0_u64, 0_u64);
    for seed in 0..HISTORIES {
        let text = history(seed);
        let told = Told::of(&text);
        if !told.has_grants() {
            continue;
        }
        let naive = naive::judge(&told);
        let whole = told.by_model(false);
        assert_eq!(whole, naive, "by model, seed {seed}\n{text}");
        assert_eq!(told.by_search(), naive, "by search, seed {seed}\n{text}");
        let stream = told.by_model(true);
        assert!(
            [naive, Unknown].contains(&stream),
            "{stream:?} in a stream, not {naive:?}, seed {seed}\n{text}"
        );
        streamed += u64::from(stream == naive);
        if let Some(brute) = told.by_brute_force(9) {
            assert_eq!(brute, naive, "by brute force, seed {seed}\n{text}");
            tried += 1;
        }
        let (found, whole) = told.by_property();
        let same = found == naive || (naive == Answer::Holds && found == Unknown && !whole);
        assert!(
            same,
            "{found:?} by property, not {naive:?}, seed {seed}\n{text}"
        );
        said[(naive == Answer::Violated) as usize] += 1;
    }
    println!("{said:?} {tried} tried, {streamed} in a stream");
    let count = said[0] + said[1];
    assert!(said.iter().all(|&said| said > count / 10), "{said:?}");
    assert!(tried > count / 4, "{tried} of {count}");
    assert!(streamed > count * 9 / 10, "{streamed} of {count}");
}
