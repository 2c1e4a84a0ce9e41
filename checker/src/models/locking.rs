//! What the models of locks share: who asks for what, and what came of it.

use histories::entries::Value;

use super::recorded::{Misfit, Outcome, Told, no_operation, wrong_value};
use crate::names::Names;

/// An owner, as a number: from 0 on, in the order in which they were first met.
pub type Owner = u32;

/// Those who hold locks.
#[derive(Default)]
pub(crate) struct Owners(Names);

impl Owners {
    /// Who acts: the client or owner that the value names, else the process.
    pub(crate) fn of(&mut self, told: &Told<'_>) -> Owner {
        let named = told.input.get("client").or_else(|| told.input.get("owner"));
        match named {
            Some(Value::Text(name) | Value::Keyword(name)) => self.0.number(name),
            Some(name) => self.0.number(&name.to_string()),
            None => self.0.number(told.process.1),
        }
    }

    /// An owner's name; its number if it was made without one.
    pub(crate) fn name(&self, owner: Owner) -> String {
        if (owner as usize) < self.0.len() {
            return self.0.text(owner).to_owned();
        }
        format!("owner {owner}")
    }
}

/// What is asked of a lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verb {
    Acquire,
    Release,
}

/// What a history says of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// It happened, or may have.
    Granted,
    /// The lock was refused because somebody held it.
    Busy,
    /// Nothing that counts.
    Nothing,
}

impl Verb {
    /// The verb of an entry.
    ///
    /// # Errors
    /// When the entry is about something else.
    pub(crate) fn of(model: &str, told: &Told<'_>) -> Result<Verb, Misfit> {
        match told.f {
            "acquire" | "lock" => Ok(Verb::Acquire),
            // What was lost may have been released.
            "release" | "unlock" | "lost" => Ok(Verb::Release),
            _ => Err(no_operation(model, &["acquire", "release"], told)),
        }
    }

    /// As our histories call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Verb::Acquire => "acquire",
            Verb::Release => "release",
        }
    }

    /// What came of it. A refusal counts only where the model wants it to.
    pub(crate) fn attempt(self, told: &Told<'_>, refusals_count: bool) -> Attempt {
        match (self, told.outcome) {
            (_, Outcome::Done(_) | Outcome::Unknown) => Attempt::Granted,
            (Verb::Acquire, Outcome::Refused(Some("busy"))) if refusals_count => Attempt::Busy,
            _ => Attempt::Nothing,
        }
    }
}

/// The fencing token that a grant came with; `None` for one of unknown outcome.
///
/// # Errors
/// When a grant that was made tells no token: what is not told cannot be found to fall.
pub(crate) fn token(told: &Told<'_>) -> Result<Option<u64>, Misfit> {
    let Outcome::Done(value) = told.outcome else {
        return Ok(None);
    };
    let named = value.get("fence").or_else(|| value.get("token"));
    let token = told.token.or_else(|| number(named.unwrap_or(value)));
    let wanted = "a token: a whole number from 0 on, or a map with one under `fence` or `token`";
    token
        .map(Some)
        .ok_or_else(|| wrong_value(wanted, told, value))
}

/// Until when a grant may be relied on, if it tells.
///
/// # Errors
/// When it tells something else than a time.
pub(crate) fn validity(told: &Told<'_>) -> Result<Option<u64>, Misfit> {
    let Outcome::Done(value) = told.outcome else {
        return Ok(None);
    };
    let named = value.get("validity").or_else(|| value.get("expires"));
    match (told.validity, named) {
        (Some(until), _) => Ok(Some(until)),
        (None, None | Some(Value::Nil)) => Ok(None),
        (None, Some(until)) => {
            let wanted = "a validity in nanoseconds, on the clock of `time`";
            let until = number(until).ok_or_else(|| wrong_value(wanted, told, value))?;
            Ok(Some(until))
        }
    }
}

fn number(value: &Value<'_>) -> Option<u64> {
    match value {
        Value::Integer(number) => u64::try_from(*number).ok(),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::super::owner_aware_mutex::{Operation, OwnerAwareMutex};
    use super::super::recorded::Recorded;
    use super::super::{fenced_mutex, lease_mutex, semaphore};
    use super::*;

    fn told<'a>(f: &'a str, input: &'a Value<'a>, outcome: Outcome<'a>) -> Told<'a> {
        Told {
            key: None,
            f,
            process: (4, "p4"),
            input,
            outcome,
            token: None,
            validity: Some(70),
            op: None,
            grant: None,
            begun: 0,
        }
    }

    fn map<'a>(key: &'a str, value: Value<'a>) -> Value<'a> {
        Value::Map(vec![(Value::Keyword(key.into()), value)])
    }

    const NIL: Value<'static> = Value::Nil;
    const DONE: Outcome<'static> = Outcome::Done(&Value::Nil);

    #[test]
    fn owners_are_clients_or_processes() {
        let mut model = OwnerAwareMutex::new(true);
        let client = map("client", Value::Text("c1".into()));
        let mut read = |f, input, outcome| model.read(&told(f, input, outcome));
        assert_eq!(
            read("acquire", &client, DONE),
            Ok(Some(Operation::Acquire(0)))
        );
        assert_eq!(
            read("lock", &Value::Nil, DONE),
            Ok(Some(Operation::Acquire(1)))
        );
        let unknown = Outcome::Unknown;
        assert_eq!(
            read("unlock", &client, unknown),
            Ok(Some(Operation::Release(0)))
        );
        let busy = Outcome::Refused(Some("busy"));
        assert_eq!(read("acquire", &client, busy), Ok(Some(Operation::Busy(0))));
        assert_eq!(read("release", &client, busy), Ok(None));
        assert_eq!(read("acquire", &client, Outcome::Refused(None)), Ok(None));
        assert!(read("read", &client, DONE).is_err());
    }

    #[test]
    fn a_refusal_is_known_by_the_name_of_its_error() {
        let named = [
            "busy",
            "[:busy]",
            "[:busy \"c2 holds it\"]",
            "[\"busy\", 3]",
        ];
        for error in named {
            assert_eq!(
                Outcome::refused(Some(error)),
                Outcome::Refused(Some("busy"))
            );
        }
        assert_eq!(Outcome::refused(None), Outcome::Refused(None));
    }

    #[test]
    fn refusals_are_nothing_unless_they_are_to_count() {
        let busy = Outcome::Refused(Some("busy"));
        let mut model = OwnerAwareMutex::new(false);
        assert_eq!(model.read(&told("acquire", &Value::Nil, busy)), Ok(None));
    }

    #[test]
    fn tokens_stand_apart_or_in_the_value() {
        let mut model = fenced_mutex::FencedMutex::new(false);
        let mut read = |outcome: Outcome<'_>| model.read(&told("acquire", &NIL, outcome));
        let acquire = |token| Ok(Some(fenced_mutex::Operation::Acquire { by: 0, token }));
        for (value, token) in [
            (Value::Integer(3), 3),
            (map("fence", Value::Integer(4)), 4),
            (map("token", Value::Integer(5)), 5),
        ] {
            assert_eq!(read(Outcome::Done(&value)), acquire(Some(token)));
        }
        assert_eq!(read(Outcome::Unknown), acquire(None));
        let text = Value::Text("5".into());
        for value in [
            Value::Nil,
            Value::Integer(-1),
            map("fence", text.clone()),
            text,
        ] {
            let misfit = read(Outcome::Done(&value)).unwrap_err().to_string();
            assert!(misfit.starts_with("`acquire` wants a token"), "{misfit}");
        }
    }

    #[test]
    fn permits_are_one_or_as_many_as_the_value_says() {
        let mut model = semaphore::Semaphore::new(3, false);
        let mut read = |input| model.read(&told("acquire", input, DONE));
        let acquire = |permits| Ok(Some(semaphore::Operation::Acquire { by: 0, permits }));
        assert_eq!(read(&Value::Nil), acquire(1));
        assert_eq!(read(&Value::Integer(2)), acquire(2));
        assert!(read(&Value::Integer(0)).is_err());
    }

    #[test]
    fn leases_end_by_themselves() {
        use lease_mutex::Operation;
        let mut model = lease_mutex::LeaseMutex::new(false);
        let mut read = |f: &str, outcome| {
            let told = told(f, &Value::Nil, outcome);
            let operation = model.read(&told).unwrap().unwrap();
            (operation, model.by_itself(&operation, &told))
        };
        let ends = |from, grant, lease| Some((from, Operation::Expire { grant, lease }));
        assert_eq!(
            read("acquire", DONE),
            (Operation::Acquire(0), ends(70, 0, 0))
        );
        let extended = Operation::Extend { grant: 0, lease: 1 };
        assert_eq!(read("extend", DONE), (extended, ends(70, 0, 1)));
        let extended = Operation::Extend { grant: 0, lease: 2 };
        let unknown = read("extend", Outcome::Unknown);
        assert_eq!(unknown, (extended, ends(70, 0, 2)));
        assert_eq!(read("release", DONE), (Operation::Release(0), None));
        let unknown = read("acquire", Outcome::Unknown);
        assert_eq!(unknown, (Operation::Acquire(1), ends(0, 1, 0)));
    }
}
