//! Registers in which no value that was found was written twice: decided in O(n log n), by zones.
//!
//! It is then plain which write each read found, and a history falls apart into *clusters*: a write and the reads of its
//! value; the initial value counts as written and returned before all else. The value stays in the register for one time
//! without gaps, so that the calls of a cluster follow one another directly in every order of the calls. Be *f* the earliest
//! return in a cluster, and *s* the latest invocation. One cluster must come before another if a call of it was over before a
//! call of the other began, which is to say if its *f* lies before the other's *s*. A history is linearizable exactly if
//!
//! 1. every value that was found was there at first or was written, and no read was over before its write began;
//! 2. no two clusters must each come before the other.
//!
//! With the *zone* of a cluster as the time between *f* and *s*, forward if *f* comes first and else backward, the second is
//! the rule that no two forward zones overlap and no backward zone lies inside a forward one (Gibbons and Korach, "Testing
//! shared memories", SIAM Journal on Computing 26, 1997; Lee and Mathur, "Efficient decrease-and-conquer
//! linearizability monitoring", 2025).
//!
//! A cas is a read of one value directly followed by the write of another. Cas link clusters into *chains*, in which each
//! value must directly follow the one before. The rules for chains are
//!
//! 1. as above, and at most one cas found each value;
//! 2. within a chain, no call was over before one began that belongs to an earlier value, nor a read before its write;
//! 3. no two chains must each come before the other, with the earliest return and the latest invocation of a whole chain.
//!
//! *Proof.* Each rule is necessary: values are written once, so that a chain is one time without gaps. They suffice: say
//! K → L if K must come before L, f(K) < s(L). Without rule 3 broken, K → L also says s(K) < f(L). A cycle of → has at least
//! three chains then. Take a shortest one, K → L → M → … If it is of three, f(K) < s(L) < f(M) < s(K) < f(L) < s(M) < f(K).
//! If it is longer, neither K → M nor M → K, that is s(M) < f(K), and for the N with M → N, f(L) < s(M) < f(K) < s(L) < f(M) <
//! s(N): L → N, and the cycle was not the shortest. So → has no cycle, and the chains can be put in an order that keeps
//! it. Within a chain, the calls are put in the order of its values, the writer of each first and its reads by their
//! invocations; rule 2 says that this keeps the order of calls that did not overlap. ∎
//!
//! A call that need not have happened is left out if no call found what it wrote, directly or through a chain of such cas:
//! what is there instead while it would have been there is the value before it, and nothing tells the two apart. Otherwise it
//! has happened.
//!
//! Whether a prefix of a history breaks a rule depends on the calls that returned in it, and on what wrote the values that
//! they found. So the calls are taken in the order of their returns, and the rules are checked for what each adds.

mod chains;
mod clusters;
mod sweep;
#[cfg(test)]
mod tests;
mod times;
mod witness;

use chains::Chains;
use clusters::Clusters;
use sweep::Sweep;
use times::Times;
use witness::Evidence;

use crate::linearizability::{Decision, History, Violation};
use crate::models::cas_register::{self, CasRegister};
use crate::models::register::{self, Register};
use crate::models::{Datum, Model};

/// What a call does to a register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Access {
    /// It found this value.
    Read(Datum),
    /// It wrote this value.
    Write(Datum),
    /// It found a value, and wrote another.
    Cas {
        /// What it found.
        expected: Datum,
        /// What it wrote.
        new: Datum,
    },
    /// It changed nothing, and found something else than a value.
    Other,
}

impl Access {
    fn greatest(self) -> Datum {
        match self {
            Access::Read(value) | Access::Write(value) => value,
            Access::Cas { expected, new } => expected.max(new),
            Access::Other => 0,
        }
    }
}

/// A model whose state is one value, which is read and written.
pub trait Accessed: Model<State = Datum> {
    /// What an operation does.
    fn access(&self, operation: &Self::Operation) -> Access;
}

impl Accessed for Register {
    fn access(&self, operation: &register::Operation) -> Access {
        match *operation {
            register::Operation::Read(value) => Access::Read(value),
            register::Operation::Write(value) => Access::Write(value),
        }
    }
}

impl Accessed for CasRegister {
    fn access(&self, operation: &cas_register::Operation) -> Access {
        match *operation {
            cas_register::Operation::Read(value) => Access::Read(value),
            cas_register::Operation::Write(value) => Access::Write(value),
            cas_register::Operation::Cas { expected, new } if expected == new => {
                Access::Read(expected)
            }
            cas_register::Operation::Cas { expected, new } => Access::Cas { expected, new },
            cas_register::Operation::ReadOther(_) => Access::Other,
        }
    }
}

/// Whether a history of a register is linearizable, in O(n log n); `None` if the closed form does not know.
///
/// It does not if a value that a call found (by a read that certainly happened, or as what a cas expects) was written more
/// than once, the initial value counting as written; if a call is [`Access::Other`] and certainly happened; or if values
/// were written by cas each of which found another's. The first two are found in one pass over the calls.
///
/// It is never [`Decision::Unknown`]. A violation has at most four calls, none of which can be left out, and a sentence. The
/// writes of values that these calls found are not among them: they are implied.
pub fn decide<M: Accessed>(model: &M, history: &History<M::Operation>) -> Option<Decision> {
    let clusters = Clusters::of(model, history)?;
    let times = Times::of(history);
    let chains = Chains::of(history, &times, &clusters)?;
    let sweep = Sweep::new(history, &times, &clusters, &chains);
    let Some((last, suspects)) = sweep.run() else {
        return Some(Decision::Linearizable);
    };
    let evidence = Evidence::new(model, history, &times, &clusters);
    let calls = evidence.reduce(suspects);
    let sentence = evidence.judge(&calls).map(|reason| evidence.tell(&reason));
    Some(Decision::Violated(Violation {
        alone: false,
        calls: calls.into_iter().map(|call| call as usize).collect(),
        prefix: history.calls()[last as usize].returned,
        sentence,
    }))
}
