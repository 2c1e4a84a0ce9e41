//! Closed forms: linearizability decided in one pass, where a proof replaces the search: registers by [`zones`], locks by
//! the rest.
//!
//! Each lock's `decide` says exactly what a search against the model would say, or `None` where a history has a shape that its
//! proof does not cover: an owner whose own calls overlap, an uncertain call that has returned, owners numbered far beyond
//! the number of calls, and what each function lists. Time is that of sorting the returns.
//!
//! A violation's calls have no order even if all others are free to have done nothing, except where a function says less.
//! They are few, four at most, as long as no owner's unknown calls pile up: an unknown call that must have taken effect may
//! have done so late, and each two calls that prove it did not are named too. In one of a hundred thousand such histories
//! one call is named too many.

pub mod fenced_mutex;
mod found;
mod granted;
pub mod lease_mutex;
mod lock;
mod named;
pub mod owner_aware_mutex;
mod reentrant;
pub mod reentrant_fenced_mutex;
pub mod reentrant_mutex;
mod refusals;
mod released;
mod replay;
pub mod semaphore;
mod slot;
pub mod streaming;
#[cfg(test)]
mod tests;
pub mod zones;

pub use found::{Found, Reason, Unclear};
pub use lock::Kind;
