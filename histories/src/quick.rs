//! The short way from a line to its event.
//!
//! [`event`] reads the JSON that [`Writer`](crate::Writer) writes: no space between tokens, no escape in a string, whole
//! numbers. It knows no errors: where it meets anything else (an escape, a space, an unknown field, `on`, `evidence`, a
//! mistake) it gives up, and `serde_json` reads the line from its start and says what is wrong with it. So it must never
//! take a line that `serde_json` refuses, or see another event in it; a property test holds it to that.
//!
//! It is there because a history of a million operations is to be read and checked in two seconds: it takes less than
//! half of the time that the derived `Deserialize` takes.

use std::borrow::Cow;

use crate::{Event, Function, Kind};

/// The event of a line, or `None` where the long way has to be taken.
#[inline]
pub(crate) fn event(line: &str) -> Option<Event<'_>> {
    let mut scanner = Scanner { line, at: 0 };
    let mut event = Event::new(0, "", 0, Kind::Invoke, Function::Acquire);
    let (mut t, mut process, mut op, mut kind, mut f) = (None, None, None, None, None);
    scanner.token(b'{')?;
    loop {
        let key = scanner.text()?;
        scanner.token(b':')?;
        match key {
            "t" => once(&mut t, scanner.number()?)?,
            "process" => once(&mut process, scanner.text()?)?,
            "op" => once(&mut op, scanner.number()?)?,
            "type" => once(&mut kind, kind_of(scanner.text()?)?)?,
            "f" => once(&mut f, function_of(scanner.text()?)?)?,
            "lock" => once(&mut event.lock, Cow::Borrowed(scanner.text()?))?,
            "grant" => once(&mut event.grant, scanner.number()?)?,
            "token" => once(&mut event.token, scanner.number()?)?,
            "validity" => once(&mut event.validity, scanner.number()?)?,
            "ttl_ms" => once(&mut event.ttl_ms, scanner.number()?)?,
            "wait_ms" => once(&mut event.wait_ms, scanner.number()?)?,
            "document" => once(&mut event.document, Cow::Borrowed(scanner.text()?))?,
            "lost" => once(&mut event.lost, scanner.flag()?)?,
            "stalled_ns" => once(&mut event.stalled_ns, scanner.number()?)?,
            "held" => once(&mut event.held, scanner.flag()?)?,
            "version" => once(&mut event.version, scanner.number()?)?,
            "based_on" => once(&mut event.based_on, scanner.number()?)?,
            "value" => once(&mut event.value, Cow::Borrowed(scanner.text()?))?,
            "entries" => once(&mut event.entries, scanner.number()?)?,
            "point" => once(&mut event.point, Cow::Borrowed(scanner.text()?))?,
            "nth" => once(&mut event.nth, scanner.number()?)?,
            "error" => once(&mut event.error, Cow::Borrowed(scanner.text()?))?,
            _ => return None,
        }
        match scanner.next()? {
            b',' => {}
            b'}' => break,
            _ => return None,
        }
    }
    if scanner.at != line.len() {
        return None;
    }
    (event.t, event.process, event.op) = (t?, Cow::Borrowed(process?), op?);
    (event.kind, event.f) = (kind?, f?);
    Some(event)
}

/// The function of a line's event, as far as it can be told from the fields that the writer puts first; what follows them
/// is not looked at.
#[inline]
pub(crate) fn function(line: &str) -> Option<Function> {
    let mut scanner = Scanner { line, at: 0 };
    scanner.token(b'{')?;
    loop {
        let key = scanner.text()?;
        scanner.token(b':')?;
        match key {
            "t" | "op" => drop(scanner.number()?),
            "process" | "type" => drop(scanner.text()?),
            "f" => return function_of(scanner.text()?),
            _ => return None,
        }
        scanner.token(b',')?;
    }
}

/// Sets a field that was not there yet: `serde_json` refuses a field that comes twice.
#[inline]
fn once<T>(field: &mut Option<T>, value: T) -> Option<()> {
    if field.is_some() {
        return None;
    }
    *field = Some(value);
    Some(())
}

fn kind_of(name: &str) -> Option<Kind> {
    Some(match name {
        "invoke" => Kind::Invoke,
        "ok" => Kind::Ok,
        "fail" => Kind::Fail,
        "info" => Kind::Info,
        _ => return None,
    })
}

/// The functions of clients; those of the nemesis are rare, and come with `on` and `evidence` anyway.
fn function_of(name: &str) -> Option<Function> {
    Some(match name {
        "acquire" => Function::Acquire,
        "extend" => Function::Extend,
        "release" => Function::Release,
        "held" => Function::Held,
        "lost" => Function::Lost,
        "renewed" => Function::Renewed,
        "work" => Function::Work,
        "read" => Function::Read,
        "write" => Function::Write,
        "point" => Function::Point,
        "accepted" => Function::Accepted,
        "stall" => Function::Stall,
        _ => return None,
    })
}

/// A place in a line.
struct Scanner<'a> {
    line: &'a str,
    at: usize,
}

impl<'a> Scanner<'a> {
    #[inline]
    fn next(&mut self) -> Option<u8> {
        let byte = *self.line.as_bytes().get(self.at)?;
        self.at += 1;
        Some(byte)
    }

    #[inline]
    fn token(&mut self, token: u8) -> Option<()> {
        (self.next()? == token).then_some(())
    }

    /// A string without escapes, and without the control characters that JSON does not allow.
    #[inline]
    fn text(&mut self) -> Option<&'a str> {
        self.token(b'"')?;
        let rest = &self.line.as_bytes()[self.at..];
        let end = rest
            .iter()
            .position(|byte| matches!(byte, b'"' | b'\\' | 0..b' '))?;
        if rest[end] != b'"' {
            return None;
        }
        let text = self.line.get(self.at..self.at + end);
        self.at += end + 1;
        text
    }

    #[inline]
    fn flag(&mut self) -> Option<bool> {
        let rest = &self.line.as_bytes()[self.at..];
        let flag = rest.starts_with(b"true");
        if !flag && !rest.starts_with(b"false") {
            return None;
        }
        self.at += if flag { 4 } else { 5 };
        Some(flag)
    }

    /// A whole number of up to 19 digits, which always fit.
    #[inline]
    fn number(&mut self) -> Option<u64> {
        let rest = &self.line.as_bytes()[self.at..];
        let (mut number, mut digits) = (0u64, 0);
        while let Some(digit @ b'0'..=b'9') = rest.get(digits) {
            if digits == 19 {
                return None;
            }
            number = number * 10 + u64::from(digit - b'0');
            digits += 1;
        }
        self.at += digits;
        let leading_zero = digits > 1 && rest[0] == b'0';
        (digits > 0 && !leading_zero).then_some(number)
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use proptest::sample::{Index, select};

    use super::*;

    /// A line as clients write them, field by field.
    fn line() -> impl Strategy<Value = String> {
        let number = || prop_oneof![0..20_u64, any::<u64>()];
        let fields = (
            (number(), "[a-zäß. ]{0,5}", number()),
            select(vec!["invoke", "ok", "fail", "info", "okay"]),
            select(vec![
                "acquire", "read", "write", "held", "point", "accepted", "inject", "reads",
            ]),
            prop::option::of(number()),
            prop::option::of("[a-zäß ]{0,5}"),
            prop::option::of(any::<bool>()),
            prop::collection::vec(
                select(vec!["token", "version", "value", "lock", "t", "new"]),
                0..3,
            ),
        );
        fields.prop_map(|((t, process, op), kind, f, grant, document, held, more)| {
            let mut line =
                format!(r#"{{"t":{t},"process":"{process}","op":{op},"type":"{kind}","f":"{f}""#);
            line += &grant.map_or(String::new(), |grant| format!(r#","grant":{grant}"#));
            line += &document.map_or(String::new(), |name| format!(r#","document":"{name}""#));
            line += &held.map_or(String::new(), |held| format!(r#","held":{held}"#));
            for (value, key) in more.iter().enumerate() {
                let value = if ["value", "lock"].contains(key) {
                    "\"x\"".into()
                } else {
                    value.to_string()
                };
                line += &format!(r#","{key}":{value}"#);
            }
            line + "}"
        })
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn never_differs_from_the_long_way(
            line in line(),
            edits in prop::collection::vec((any::<Index>(), select(Vec::from_iter("\"\\{}[]:,.-+0123e \tntfkä\u{1}".chars()))), 0..3),
        ) {
            let mut characters: Vec<char> = line.chars().collect();
            for (at, character) in edits {
                let at = at.index(characters.len());
                characters[at] = character;
            }
            let line = String::from_iter(characters);
            if let (Some(function), Some(event)) = (function(&line), event(&line)) {
                prop_assert_eq!(function, event.f);
            }
            if let Some(event) = event(&line) {
                let long: Result<Event<'_>, _> = serde_json::from_str(&line);
                prop_assert!(long.as_ref().is_ok_and(|long| *long == event), "{line}: {event:?}, {long:?}");
            }
        }
    }

    #[test]
    fn takes_what_clients_write() {
        for line in [
            r#"{"t":0,"process":"c1","op":7,"type":"invoke","f":"acquire","lock":"l","ttl_ms":1000,"wait_ms":0}"#,
            r#"{"t":1,"process":"c1","op":7,"type":"ok","f":"acquire","lock":"l","token":3,"validity":1000000}"#,
            r#"{"t":2,"process":"c1.2","op":8,"type":"fail","f":"acquire","lock":"l","error":"busy"}"#,
            r#"{"t":3,"process":"c1","op":9,"type":"ok","f":"held","lock":"l","grant":7,"held":true}"#,
            r#"{"t":4,"process":"c1","op":9,"type":"ok","f":"write","grant":7,"document":"d","version":2,"based_on":1,"value":""}"#,
            r#"{"t":5,"process":"c1","op":9,"type":"invoke","f":"point","grant":7,"point":"before-write","nth":1}"#,
            r#"{"t":6,"process":"storage","op":9,"type":"ok","f":"accepted","document":"d","version":2,"entries":1}"#,
        ] {
            let quick = event(line).unwrap_or_else(|| panic!("not taken: {line}"));
            assert_eq!(quick, serde_json::from_str(line).unwrap());
        }
    }

    #[test]
    fn leaves_to_serde_json_what_it_would_get_wrong() {
        let most = "9999999999999999999";
        let line = |t: &str| format!(r#"{{"t":{t},"process":"c1","op":7,"type":"ok","f":"read"}}"#);
        assert_eq!(event(&line(most)).map(|event| event.t), most.parse().ok());
        for t in [
            "18446744073709551616",
            "10000000000000000000",
            "01",
            "-1",
            "1.5",
            "1e3",
            "",
            "null",
        ] {
            assert_eq!(event(&line(t)), None, "{t}");
        }
        assert_eq!(event(&(line("1") + " ")), None);
        assert_eq!(event(&line(r#"1,"t":1"#)), None, "a field that comes twice");
        assert_eq!(
            event(&line("1").replace("c1", "c\\u0031")),
            None,
            "an escape"
        );
        assert_eq!(
            event(&line("1").replace("c1", "c\t")),
            None,
            "a control character"
        );
        assert_eq!(event(&line("1").replace(r#""op":7,"#, "")), None, "no op");
    }
}
