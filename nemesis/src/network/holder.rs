//! The holder: a process inside a host that takes packets from a netfilter queue and gives each back a while later.
//!
//! Packets leave in the order in which they came. When it is told to end (SIGTERM), it gives back all that it holds, at
//! once, and ends. What it did stands in a file, as JSON, which is replaced as it changes.

use std::collections::VecDeque;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nfq::{Message, Queue, Verdict};
use nix::sys::signal::{SigSet, Signal};
use nix::sys::signalfd::{SfdFlags, SignalFd};
use serde::{Deserialize, Serialize};

use crate::faults::FaultError;

/// How often the queue is looked at: a packet is held longer than asked by about that much.
const TICK: Duration = Duration::from_micros(500);

/// How often the file of figures is replaced, at most.
const TELL: Duration = Duration::from_millis(5);

/// How many packets the kernel may have in the queue.
const PACKETS_MAX: u32 = 65_536;

/// How much of each packet is copied to us, in bytes. Nothing of it is looked at, and a small copy keeps held packets
/// small.
const COPIED: u16 = 64;

/// What the holder did so far.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Figures {
    /// Packets that came.
    pub packets: u64,
    /// Of these, how many are held now.
    pub holding: u64,
    /// Of these, how many were given back when their time had come.
    pub released: u64,
    /// Of these, how many were given back at the end, before their time.
    pub released_at_end: u64,
    /// The shortest that a packet was held whose time had come, in microseconds.
    pub held_us_min: Option<u64>,
    /// The longest that any packet was held, in microseconds.
    pub held_us_max: Option<u64>,
}

/// Holds each packet of `queue` for `delay`, until SIGTERM; `figures` is the file that says what came of it.
pub(crate) fn run(queue: u16, delay: Duration, figures: &Path) -> Result<(), FaultError> {
    let failed = |what: &'static str| {
        move |source: io::Error| FaultError::Process {
            what: what.to_owned(),
            source,
        }
    };
    let end = end_signal().map_err(failed("taking SIGTERM"))?;
    let packets = open(queue).map_err(failed("opening the netfilter queue"))?;
    let mut holder = Holder {
        packets,
        delay,
        held: VecDeque::new(),
        figures: Figures::default(),
        told: None,
        file: figures.to_path_buf(),
    };
    holder.tell().map_err(failed("writing its figures"))?;
    while end
        .read_signal()
        .map_err(|error| failed("waiting for SIGTERM")(error.into()))?
        .is_none()
    {
        holder.take_in().map_err(failed("taking packets"))?;
        holder
            .release_due()
            .map_err(failed("giving packets back"))?;
        holder
            .tell_if_new()
            .map_err(failed("writing its figures"))?;
        thread::sleep(TICK);
    }
    holder.take_in().map_err(failed("taking packets"))?;
    holder
        .release_all()
        .map_err(failed("giving packets back"))?;
    holder.tell().map_err(failed("writing its figures"))
}

fn end_signal() -> io::Result<SignalFd> {
    let mut signals = SigSet::empty();
    signals.add(Signal::SIGTERM);
    signals.thread_block()?;
    Ok(SignalFd::with_flags(&signals, SfdFlags::SFD_NONBLOCK)?)
}

fn open(queue: u16) -> io::Result<Queue> {
    let mut packets = Queue::open()?;
    packets.bind(queue)?;
    packets.set_queue_max_len(queue, PACKETS_MAX)?;
    packets.set_copy_range(queue, COPIED)?;
    packets.set_nonblocking(true);
    Ok(packets)
}

struct Held {
    since: Instant,
    packet: Message,
}

struct Holder {
    packets: Queue,
    delay: Duration,
    held: VecDeque<Held>,
    figures: Figures,
    /// What the file says, and since when.
    told: Option<(Figures, Instant)>,
    file: PathBuf,
}

impl Holder {
    fn take_in(&mut self) -> io::Result<()> {
        loop {
            match self.packets.recv() {
                Ok(packet) => {
                    let since = Instant::now();
                    self.held.push_back(Held { since, packet });
                    self.figures.packets += 1;
                    self.figures.holding += 1;
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    fn release_due(&mut self) -> io::Result<()> {
        while self
            .held
            .front()
            .is_some_and(|held| held.since.elapsed() >= self.delay)
        {
            let held_us = self.release_first()?;
            self.figures.released += 1;
            let least = self.figures.held_us_min;
            self.figures.held_us_min = Some(least.map_or(held_us, |least| least.min(held_us)));
        }
        Ok(())
    }

    fn release_all(&mut self) -> io::Result<()> {
        while !self.held.is_empty() {
            self.release_first()?;
            self.figures.released_at_end += 1;
        }
        Ok(())
    }

    /// Gives the first packet back; how long it was held, in microseconds.
    fn release_first(&mut self) -> io::Result<u64> {
        let Some(mut held) = self.held.pop_front() else {
            return Ok(0);
        };
        let held_us = u64::try_from(held.since.elapsed().as_micros()).unwrap_or(u64::MAX);
        held.packet.set_verdict(Verdict::Accept);
        self.packets.verdict(held.packet)?;
        self.figures.holding -= 1;
        self.figures.held_us_max = self.figures.held_us_max.max(Some(held_us));
        Ok(held_us)
    }

    fn tell_if_new(&mut self) -> io::Result<()> {
        match &self.told {
            Some((told, at)) if *told == self.figures || at.elapsed() < TELL => Ok(()),
            _ => self.tell(),
        }
    }

    fn tell(&mut self) -> io::Result<()> {
        let fresh = self.file.with_extension("new");
        fs::write(&fresh, serde_json::to_vec(&self.figures)?)?;
        fs::rename(&fresh, &self.file)?;
        self.told = Some((self.figures.clone(), Instant::now()));
        Ok(())
    }
}
