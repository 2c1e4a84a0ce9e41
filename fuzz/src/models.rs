//! Any operations of every model, made of bytes.

use checker::models::cas_register::{self, CasRegister};
use checker::models::fenced_mutex::{self, FencedMutex};
use checker::models::fenced_register::{self, FencedRegister};
use checker::models::lease_mutex::{self, LeaseMutex};
use checker::models::map::{self, Access, StringMap};
use checker::models::mutex::{self, Mutex};
use checker::models::owner_aware_mutex::{self, OwnerAwareMutex};
use checker::models::reentrant_fenced_mutex::ReentrantFencedMutex;
use checker::models::reentrant_mutex::{self, ReentrantMutex};
use checker::models::register::{self, Register};
use checker::models::semaphore::{self, Semaphore};
use checker::models::{Datum, Model, Outcome, Owner, Recorded, Told};
use histories::entries::Value;

/// What an operation is made of.
pub struct Asked {
    /// Which operation, of as many as the model has.
    pub what: u8,
    /// Its value, token, grant or number of permits.
    pub value: u8,
    /// How many values there are.
    pub values: u8,
    /// Whose it is.
    pub owner: Owner,
    /// How many calls began before.
    pub before: u32,
    /// Whether it may be one that no history has.
    pub is_wild: bool,
}

impl Asked {
    /// One of the numbers below a bound, which the lower half of the value chooses.
    fn low(&self, bound: u8) -> u8 {
        (self.value & 15) % bound
    }

    /// One of the numbers below a bound, which the upper half of the value chooses.
    fn high(&self, bound: u8) -> u8 {
        (self.value >> 4) % bound
    }

    /// A token of few, the last two that there are among them.
    fn token(&self) -> u64 {
        [0, 1, 2, 3, 4, 5, u64::MAX - 1, u64::MAX][usize::from(self.high(8))]
    }

    /// A token, or none, as of a grant that did not tell it.
    fn told_token(&self) -> Option<u64> {
        (self.low(4) != 0).then(|| self.token())
    }
}

/// A model whose operations can be made of anything.
pub trait Made: Model {
    /// The operation that is asked for.
    fn operation(&mut self, asked: &Asked) -> Self::Operation;

    /// Takes from an operation what only its return tells.
    fn untell(_operation: &mut Self::Operation) {}

    /// Whether the object does it by itself.
    fn is_by_itself(_operation: &Self::Operation) -> bool {
        false
    }
}

/// What a history tells of an operation that was done.
fn told<'a>(f: &'a str, input: &'a Value<'a>) -> Told<'a> {
    Told {
        f,
        key: None,
        process: (0, "0"),
        input,
        outcome: Outcome::Done(input),
        token: Some(0),
        validity: None,
        op: None,
        grant: None,
        begun: 0,
    }
}

/// The operation that a history tells of. It makes values known to the model, which describes them later.
fn read<M: Recorded>(model: &mut M, f: &str, input: &Value<'_>) -> M::Operation {
    let read = model.read(&told(f, input)).expect("the model has it");
    read.expect("what was done tells something")
}

impl Made for Register {
    fn operation(&mut self, asked: &Asked) -> register::Operation {
        let value = Value::Integer(asked.low(asked.values).into());
        read(self, ["read", "write"][usize::from(asked.what % 2)], &value)
    }
}

impl Made for CasRegister {
    fn operation(&mut self, asked: &Asked) -> cas_register::Operation {
        use cas_register::Operation::{Cas, Read, ReadOther, Write};
        let mut datum = |value: u8| -> Datum {
            match read(self, "write", &Value::Integer(value.into())) {
                Write(datum) => datum,
                other => unreachable!("a write is no {other:?}"),
            }
        };
        let value = datum(asked.low(asked.values));
        match asked.what % 4 {
            0 => Read(value),
            1 => Write(value),
            2 => ReadOther(value),
            _ => Cas {
                expected: value,
                new: datum(asked.high(asked.values)),
            },
        }
    }
}

impl Made for FencedRegister {
    fn operation(&mut self, asked: &Asked) -> fenced_register::Operation {
        use fenced_register::Operation::{Read, Reject, Write};
        let input = Value::Integer(asked.low(asked.values).into());
        let token = asked.token();
        match (asked.what % 3, read(self, "write", &input)) {
            (0, Write { value, .. }) => Read(value),
            (1, Write { value, .. }) => Write { value, token },
            _ => Reject(token),
        }
    }
}

impl Made for StringMap {
    fn operation(&mut self, asked: &Asked) -> map::Operation {
        let strings = ["", "a", "b", "ab", "ba", "aa", "aab", "aba"];
        let string = strings[usize::from(asked.low(asked.values))];
        let put = read(self, "put", &Value::Text(string.into()));
        let access = match (asked.what % 3, put.access) {
            (0, Access::Put(string)) => Access::Get(string),
            (1, Access::Put(string)) => Access::Append(string),
            (_, put) => put,
        };
        map::Operation { access, ..put }
    }
}

impl Made for Mutex {
    fn operation(&mut self, asked: &Asked) -> mutex::Operation {
        use mutex::Operation::{Acquire, Busy, Release};
        [Acquire, Release, Busy][usize::from(asked.what % 3)](asked.owner)
    }
}

impl Made for OwnerAwareMutex {
    fn operation(&mut self, asked: &Asked) -> owner_aware_mutex::Operation {
        use owner_aware_mutex::Operation::{Acquire, Busy, Release};
        [Acquire, Release, Busy][usize::from(asked.what % 3)](asked.owner)
    }
}

impl Made for ReentrantMutex {
    fn operation(&mut self, asked: &Asked) -> reentrant_mutex::Operation {
        use reentrant_mutex::Operation::{Acquire, Busy, Release};
        [Acquire, Release, Busy][usize::from(asked.what % 3)](asked.owner)
    }
}

/// What is done to a lock with tokens.
fn fenced(asked: &Asked) -> fenced_mutex::Operation {
    use fenced_mutex::Operation::{Acquire, Busy, Release};
    let by = asked.owner;
    match asked.what % 3 {
        0 => Acquire {
            by,
            token: asked.told_token(),
        },
        1 => Release(by),
        _ => Busy(by),
    }
}

/// Nobody knows the token of a grant before it is made.
fn untell_token(operation: &mut fenced_mutex::Operation) {
    if let fenced_mutex::Operation::Acquire { token, .. } = operation {
        *token = None;
    }
}

impl Made for FencedMutex {
    fn operation(&mut self, asked: &Asked) -> fenced_mutex::Operation {
        fenced(asked)
    }

    fn untell(operation: &mut fenced_mutex::Operation) {
        untell_token(operation);
    }
}

impl Made for ReentrantFencedMutex {
    fn operation(&mut self, asked: &Asked) -> fenced_mutex::Operation {
        fenced(asked)
    }

    fn untell(operation: &mut fenced_mutex::Operation) {
        untell_token(operation);
    }
}

impl Made for LeaseMutex {
    /// Each acquire makes a grant of its own, numbered as its call is, unless it is wild.
    fn operation(&mut self, asked: &Asked) -> lease_mutex::Operation {
        use lease_mutex::Operation::{Acquire, Busy, Expire, Extend, Release};
        let grant = u32::from(asked.low(8));
        let lease = u32::from(asked.high(3));
        match asked.what % 5 {
            0 if asked.is_wild => Acquire(grant),
            0 => Acquire(asked.before),
            1 => Release(grant),
            2 => Extend { grant, lease },
            3 => Expire { grant, lease },
            _ => Busy(asked.owner),
        }
    }

    fn is_by_itself(operation: &lease_mutex::Operation) -> bool {
        matches!(operation, lease_mutex::Operation::Expire { .. })
    }
}

impl Made for Semaphore {
    fn operation(&mut self, asked: &Asked) -> semaphore::Operation {
        use semaphore::Operation::{Acquire, Busy, Release};
        let by = asked.owner;
        let permits = [1, 2, 3, u32::MAX][usize::from(asked.low(4))];
        match asked.what % 3 {
            0 => Acquire { by, permits },
            1 => Release { by, permits },
            _ => Busy { by, permits },
        }
    }
}
