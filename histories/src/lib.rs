//! What happened: the events of a run, and the file that holds them.
//!
//! A history is a text of JSON lines, UTF-8, plain or as a zstd stream: a [`Header`], then one [`Event`] a line, then a
//! [`Footer`]. [`Writer`] writes it as the run goes, [`Reader`] streams it back, [`seal`] puts it in order and closes it.
//! Histories of other projects' formats are read by [`entries::Entries`], and ours with them where only operations matter.
//!
//! # The format, version 2
//!
//! Version 1 is read as well; what it left unsaid of its faults is filled in. These are lines of `corpus/v1/paused-client.jsonl` (the header and a line or two shortened by `…`). A client reads, is
//! paused until its lease is over and another client has written, and then writes:
//!
//! ```json
//! {"fencepost":1,"run":"019ad1f0-…","started":"2025-11-30T01:20:00Z","seed":42,"plan":{…},"servers":{"s1":"8.0.2",…},…}
//! {"t":31000355,"process":"c1","op":10000006,"type":"invoke","f":"acquire","lock":"lock","ttl_ms":500,"wait_ms":0}
//! {"t":31402274,"process":"c1","op":10000006,"type":"ok","f":"acquire","lock":"lock","validity":531002355}
//! {"t":31440112,"process":"c1","op":10000008,"type":"invoke","f":"read","grant":10000006,"document":"document"}
//! {"t":32050031,"process":"c1","op":10000008,"type":"ok","f":"read","grant":10000006,"document":"document","version":2,"value":"c2-1"}
//! {"t":37150950,"process":"c1","op":10000009,"type":"invoke","f":"point","grant":10000006,"point":"before-write","nth":2}
//! {"t":38020411,"process":"nemesis","op":1,"type":"ok","f":"inject","step":0,"fault":"pause","on":["c1"],…,"evidence":{"states":"TT",…}}
//! {"t":543705735,"process":"c2","op":20000013,"type":"ok","f":"write","grant":20000010,"document":"document","version":3}
//! {"t":544160249,"process":"c1","op":10000010,"type":"invoke","f":"write","grant":10000006,"document":"document","based_on":2,"value":"c1-2"}
//! {"t":545265168,"process":"c1","op":10000010,"type":"ok","f":"write","grant":10000006,"document":"document","version":4}
//! {"events":84}
//! ```
//!
//! - **Line 1** is the header. Its `fencepost` is the version of the format; a version that is newer than [`FORMAT_VERSION`]
//!   is refused with the build that is needed. `build` says which one wrote the file.
//! - **An event** has `t` (nanoseconds since the run's monotonic base), `process`, `op` (a completion carries that of its
//!   invocation), `type` ([`Kind`]) and `f` ([`Function`]), and then the fields of that `f`. A field that has nothing to
//!   say is absent; `null` says the same.
//! - **The last line** is the footer, `{"events":84,"sha256":"…"}`. Its first key is `events`, by which it is told from an
//!   event. The digest is that of every byte before this line, decompressed: [`Reader::seal`] says whether it fits.
//! - **The header** has, since version 2, the `contract` ([`Clause`]) and `heartbeat_ms`; its plan says of each fault what it
//!   `does` ([`Effect`]) and what its evidence `shows` ([`Expectation`]).
//! - **Order.** A sealed history is sorted by `t`; events of the same time stand in the order of their process. While the
//!   run goes on, and after a crash, lines are only roughly in order: [`seal`] sorts them.
//! - **Fields are added freely**, without a new version, and unknown ones are ignored. An unknown `f` or `type` is an error:
//!   nothing may be concluded from a history that is not understood. Only the form is judged here; whether events make sense
//!   (an `ok` without its `invoke`, an `op` used twice) is for the checker to find.
//! - Lines are at most 16 MiB long.
//!
//! # Files that are not whole
//!
//! A crash may cut a file anywhere, and what is before the cut counts:
//!
//! | the file | is read as |
//! |---|---|
//! | ends after a whole line, without a footer | [`Ending::Truncated`], [`Cut::NoFooter`] |
//! | ends within a line: no newline, whatever stands there, or a newline after a JSON object that is not closed | all before that line; [`Cut::PartialLine`] |
//! | is compressed, and its stream ends too early | all whole lines that can be decompressed; [`Cut::PartialStream`] |
//! | ends within its header, or is empty | an error: nothing can be understood |
//! | has a line in its middle that is broken, blank or not UTF-8 | an error, with line and column |
//! | has a footer with another count than its events | an error |
//! | has anything after its footer, be it a blank line | an error |
//! | is compressed and fails its checksum | an error |
//!
//! # Example
//!
//! ```
//! use histories::{Ending, Function, Kind, Reader};
//!
//! # fn main() -> Result<(), histories::ReadError> {
//! let mut reader = Reader::open("corpus/v1/paused-client.jsonl.zst")?;
//! assert_eq!(reader.header().plan.policy, "unfenced");
//!
//! let mut accepted = 0;
//! while let Some(event) = reader.next()? {
//!     if event.f == Function::Write && event.kind == Kind::Ok {
//!         accepted += 1;
//!     }
//! }
//! assert_eq!(accepted, 6);
//! assert_eq!(reader.ending(), Some(Ending::Complete { events: 84 }));
//! # Ok(())
//! # }
//! ```

mod contract;
mod effect;
pub mod entries;
mod error;
mod event;
mod header;
mod host;
mod line;
mod plan;
mod quick;
mod reader;
mod regular;
mod seal;
mod version_1;
mod visible;
mod writer;

pub use contract::{Clause, Hazard, Promise};
pub use effect::{Deed, Effect, Expectation, Shows};
pub use error::{Place, ReadError, SealError, WriteError};
pub use event::{Event, Function, Kind};
pub use header::{FORMAT_VERSION, Footer, Header};
pub use host::{LEADER, NEMESIS, Role, SERVERS, STORAGE, host_of, life_of};
pub use line::Cut;
pub use plan::{Named, Plan, PlannedFault, Until, When, Workload};
pub use reader::{Ending, Reader, Seal};
pub use regular::{create_regular, open_regular, read_small};
pub use seal::seal;
pub use visible::{abridged, visible};
pub use writer::Writer;
