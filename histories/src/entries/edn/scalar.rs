//! Numbers, and strings with escapes.

use std::borrow::Cow;

/// The number that a token is, if it is one of 64 bits; `N` says that it may have more.
#[inline]
pub(super) fn integer(token: &str) -> Option<i64> {
    let digits = token.strip_suffix('N').unwrap_or(token);
    let unsigned = digits.trim_start_matches(['+', '-']);
    // `010` is the number eight to Clojure, and none to EDN.
    if unsigned.len() > 1 && unsigned.starts_with('0') {
        return None;
    }
    digits.parse().ok()
}

/// A string's text without its escapes; or the place of one that is none, and why.
pub(super) fn unescaped(text: &str) -> Result<String, (usize, Cow<'static, str>)> {
    let mut plain = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find('\\') {
        plain.push_str(&rest[..at]);
        let escape = &rest[at + 1..];
        let (character, length) = match escape.as_bytes().first() {
            Some(b'n') => ('\n', 1),
            Some(b't') => ('\t', 1),
            Some(b'r') => ('\r', 1),
            Some(b'b') => ('\x08', 1),
            Some(b'f') => ('\x0c', 1),
            Some(b'\\') => ('\\', 1),
            Some(b'"') => ('"', 1),
            Some(b'u') => match unicode(escape) {
                Some(found) => found,
                None => {
                    let message = "`\\u` wants the four hexadecimal digits of a character";
                    return Err((text.len() - escape.len() - 1, message.into()));
                }
            },
            _ => {
                let message = "no escape of a string: it has `\\n`, `\\t`, `\\r`, `\\b`, `\\f`, `\\\\`, `\\\"`, `\\u0041`";
                return Err((text.len() - escape.len() - 1, message.into()));
            }
        };
        plain.push(character);
        rest = &escape[length..];
    }
    plain.push_str(rest);
    Ok(plain)
}

/// The character of `u` and four digits, and how many bytes it takes: two of them in a row where it is beyond UTF-16's first plane.
fn unicode(escape: &str) -> Option<(char, usize)> {
    let unit = |at: usize| {
        let digits = escape.get(at..at + 4)?;
        let plain = digits.bytes().all(|digit| digit.is_ascii_hexdigit());
        plain
            .then(|| u16::from_str_radix(digits, 16).ok())
            .flatten()
    };
    let first = unit(1)?;
    if let Some(character) = char::from_u32(u32::from(first)) {
        return Some((character, 5));
    }
    let second = (escape.get(5..7) == Some("\\u"))
        .then(|| unit(7))
        .flatten()?;
    let character = char::decode_utf16([first, second]).next()?.ok()?;
    Some((character, 11))
}
