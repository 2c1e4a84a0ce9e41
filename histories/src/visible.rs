//! Text of unknown origin, made fit to be shown to a person.

use std::borrow::Cow;
use std::fmt::Write;

/// The text with every character escaped, as `\u001b`, that a terminal would obey instead of showing: control characters
/// (newlines too), those that change the direction of text, and separators of lines and paragraphs.
///
/// The escapes are those of JSON, so that escaped JSON means the same.
pub fn visible(text: &str) -> Cow<'_, str> {
    if !text.contains(is_obeyed) {
        return Cow::Borrowed(text);
    }
    let mut shown = String::with_capacity(text.len() + 16);
    for character in text.chars() {
        if is_obeyed(character) {
            // Writing to a string cannot fail.
            let _ = write!(shown, "\\u{:04x}", u32::from(character));
        } else {
            shown.push(character);
        }
    }
    Cow::Owned(shown)
}

/// The text itself, or where it has more than `most` characters, its beginning and its end, with how much is left out between.
pub fn abridged(text: &str, most: usize) -> Cow<'_, str> {
    let length = text.chars().count();
    if length <= most {
        return Cow::Borrowed(text);
    }
    let part = most / 2;
    let at = |nth| {
        text.char_indices()
            .nth(nth)
            .map_or(text.len(), |(at, _)| at)
    };
    let (start, end) = (&text[..at(part)], &text[at(length - part)..]);
    Cow::Owned(format!(
        "{start}… ({} more characters) …{end}",
        length - 2 * part
    ))
}

/// Whether a terminal would obey a character: Unicode's C0 and C1 controls and DEL, and its `Bidi_Control` characters
/// (Unicode Standard Annex #9), with which text shows in another order than it stands.
pub(crate) fn is_obeyed(character: char) -> bool {
    let directs = matches!(
        character,
        '\u{061c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    );
    character.is_control() || directs || matches!(character, '\u{2028}' | '\u{2029}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn escapes_what_a_terminal_obeys() {
        assert_eq!(visible("\x1b]0;x\x07"), "\\u001b]0;x\\u0007");
        assert_eq!(
            visible("a\nb\r\x7f\u{9b}"),
            "a\\u000ab\\u000d\\u007f\\u009b"
        );
        assert_eq!(visible("\u{202e}\u{2069}\u{2028}"), "\\u202e\\u2069\\u2028");
    }

    #[test]
    fn what_is_long_keeps_its_ends() {
        assert_eq!(abridged("näher", 5), "näher");
        assert_eq!(abridged("höher", 4), "hö… (1 more characters) …er");
        let long = abridged(&"9".repeat(100_000), 400).into_owned();
        assert!(
            long.chars().count() < 450 && long.contains("99600 more"),
            "{long}"
        );
    }

    #[test]
    fn leaves_alone_what_people_write() {
        let text = "Schläfer, 時間, ✅ c1\\u001b";
        assert!(matches!(visible(text), Cow::Borrowed(same) if same == text));
    }

    #[test]
    fn escaped_json_means_the_same() {
        let text = "\u{7f}\u{9b}\u{202e}";
        let json = serde_json::to_string(text).unwrap();
        let shown = visible(&json);
        assert_ne!(shown, json);
        assert_eq!(serde_json::from_str::<String>(&shown).unwrap(), text);
    }
}
