//! EDN (<https://github.com/edn-format/edn>), as far as histories have it: a parser that borrows from its text.

mod scalar;

use std::borrow::Cow;
use std::fmt;

use super::Value;
use crate::visible::is_obeyed;
use scalar::{integer, unescaped};

/// How deep forms may be nested. It keeps a damaged file from overflowing the stack.
const DEEPEST: usize = 100;

/// Why a text is not read on.
#[derive(Debug)]
pub(crate) enum Stop {
    /// The text ends within a form: more of it may follow.
    Ends,
    /// It is no EDN.
    Wrong(Mistake),
}

/// What is wrong with a text, and where: prints as `` expected `]` at byte 7 ``.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The wrong byte, counted from 0.
    pub at: usize,
    /// What is wrong with it, as a fragment.
    pub message: Cow<'static, str>,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} at byte {}", self.message, self.at + 1)
    }
}

impl std::error::Error for Mistake {}

/// What a byte is to a token.
#[derive(Clone, Copy, PartialEq)]
enum Class {
    /// A part of it.
    Part,
    /// Its end: white, or a comma.
    Space,
    /// Its end: a bracket, the quote of a string, or the semicolon of a comment.
    Mark,
    /// A control character, or what is no ASCII and may be one.
    Doubtful,
}

const CLASSES: [Class; 256] = {
    let mut classes = [Class::Part; 256];
    let (spaces, marks) = (b" \t\n\r\x0b\x0c,", b"()[]{}\";");
    let mut at = 0;
    while at < classes.len() {
        if at < 0x20 || at >= 0x7f {
            classes[at] = Class::Doubtful;
        }
        at += 1;
    }
    at = 0;
    while at < spaces.len() {
        classes[spaces[at] as usize] = Class::Space;
        at += 1;
    }
    at = 0;
    while at < marks.len() {
        classes[marks[at] as usize] = Class::Mark;
        at += 1;
    }
    classes
};

/// A place in a text.
pub(crate) struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// Whether nothing can follow, so that the text's end is a token's, too.
    whole: bool,
}

impl<'a> Parser<'a> {
    /// A parser that begins at a byte of a text, which may go on (unless `whole`) after what is known of it.
    #[inline]
    pub(crate) fn new(text: &'a str, at: usize, whole: bool) -> Self {
        Parser {
            text,
            at,
            depth: 0,
            whole,
        }
    }

    /// The byte that is looked at, counted from 0.
    #[inline]
    pub(crate) fn at(&self) -> usize {
        self.at
    }

    /// What was passed since a byte.
    #[inline]
    pub(crate) fn since(&self, start: usize) -> &'a str {
        &self.text[start..self.at]
    }

    /// The byte that is looked at; `None` at the end.
    #[inline]
    pub(crate) fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    #[inline]
    pub(crate) fn byte(&self) -> Result<u8, Stop> {
        self.peek().ok_or(Stop::Ends)
    }

    /// Passes one byte, which has to be ASCII.
    #[inline]
    pub(crate) fn pass(&mut self) {
        self.at += 1;
    }

    /// A mistake at a byte.
    #[cold]
    pub(crate) fn wrong<T>(
        &self,
        at: usize,
        message: impl Into<Cow<'static, str>>,
    ) -> Result<T, Stop> {
        let message = message.into();
        Err(Stop::Wrong(Mistake { at, message }))
    }

    /// Passes all that says nothing: white, commas, comments, and forms that `#_` discards.
    #[inline]
    pub(crate) fn space(&mut self) -> Result<(), Stop> {
        let bytes = self.text.as_bytes();
        while let Some(&byte) = bytes.get(self.at) {
            if CLASSES[byte as usize] == Class::Space {
                self.at += 1;
            } else if byte == b';' || byte == b'#' && bytes.get(self.at + 1) == Some(&b'_') {
                return self.comments();
            } else {
                break;
            }
        }
        Ok(())
    }

    fn comments(&mut self) -> Result<(), Stop> {
        let bytes = self.text.as_bytes();
        let mut discarded = 0usize;
        loop {
            let rest = &bytes[self.at..];
            match rest {
                [byte, ..] if CLASSES[*byte as usize] == Class::Space => self.at += 1,
                [b';', ..] => match rest.iter().position(|byte| *byte == b'\n') {
                    Some(length) => self.at += length,
                    None if self.whole => self.at = bytes.len(),
                    None => return Err(Stop::Ends),
                },
                // Of two in a row the second discards a form, and the first the one after it.
                [b'#', b'_', ..] => {
                    discarded += 1;
                    self.at += 2;
                }
                _ if discarded == 0 => return Ok(()),
                _ => {
                    discarded -= 1;
                    self.enter()?;
                    self.skip()?;
                    self.depth -= 1;
                }
            }
        }
    }

    fn enter(&mut self) -> Result<(), Stop> {
        if self.depth == DEEPEST {
            return self.wrong(self.at, format!("more than {DEEPEST} forms in each other"));
        }
        self.depth += 1;
        Ok(())
    }

    /// Passes one form, which begins here.
    #[inline]
    pub(crate) fn skip(&mut self) -> Result<(), Stop> {
        match self.byte()? {
            b'"' => self.skip_string().map(drop),
            b'#' | b'\\' => self.skip_other(),
            byte if CLASSES[byte as usize] == Class::Mark => self.skip_other(),
            _ => self.token().map(drop),
        }
    }

    fn skip_other(&mut self) -> Result<(), Stop> {
        loop {
            match self.byte()? {
                b'"' => return self.skip_string().map(drop),
                b'[' => return self.skip_items(b']'),
                b'(' => return self.skip_items(b')'),
                b'{' => return self.skip_items(b'}'),
                byte @ (b']' | b')' | b'}') => return self.unopened(byte),
                b'\\' => return self.character(),
                b'#' => {
                    self.at += 1;
                    match self.byte()? {
                        b'{' => return self.skip_items(b'}'),
                        b'#' => return self.token().map(drop),
                        _ => self.tag()?,
                    }
                }
                _ => return self.token().map(drop),
            }
        }
    }

    /// Passes a tag (its `#` was) up to the form that it tags.
    fn tag(&mut self) -> Result<(), Stop> {
        let start = self.at;
        let name = self.token()?;
        if !name.starts_with(|first: char| first.is_alphabetic() || first == ':') {
            return self.wrong(start, "`#` is followed by no tag");
        }
        self.space()
    }

    fn skip_items(&mut self, closing: u8) -> Result<(), Stop> {
        self.enter()?;
        self.at += 1;
        while self.item(closing)? {
            self.skip()?;
        }
        self.depth -= 1;
        Ok(())
    }

    /// Whether another item follows; passes the closing bracket if not.
    #[inline]
    pub(crate) fn item(&mut self, closing: u8) -> Result<bool, Stop> {
        self.space()?;
        let byte = self.byte()?;
        if byte == closing {
            self.at += 1;
            return Ok(false);
        }
        if matches!(byte, b']' | b')' | b'}') {
            let (closing, byte) = (char::from(closing), char::from(byte));
            return self.wrong(self.at, format!("expected `{closing}`, found `{byte}`"));
        }
        Ok(true)
    }

    fn unopened<T>(&self, byte: u8) -> Result<T, Stop> {
        self.wrong(
            self.at,
            format!("`{}` closes nothing here", char::from(byte)),
        )
    }

    /// Passes a string; the place of its first backslash, if it has one.
    #[inline]
    fn skip_string(&mut self) -> Result<Option<usize>, Stop> {
        let bytes = self.text.as_bytes();
        let (mut at, mut escape) = (self.at + 1, None);
        loop {
            match bytes.get(at) {
                Some(b'"') => break,
                Some(b'\\') => {
                    escape.get_or_insert(at);
                    at += 2;
                }
                Some(_) => at += 1,
                None => return Err(Stop::Ends),
            }
        }
        self.at = at + 1;
        Ok(escape)
    }

    /// A symbol, a keyword or a number: all up to what ends it.
    #[inline]
    fn token(&mut self) -> Result<&'a str, Stop> {
        let (bytes, start) = (self.text.as_bytes(), self.at);
        let mut at = start;
        while at < bytes.len() && CLASSES[bytes[at] as usize] == Class::Part {
            at += 1;
        }
        if at < bytes.len() && CLASSES[bytes[at] as usize] == Class::Doubtful {
            at = self.end_of_doubtful(at)?;
        }
        if at == bytes.len() && !self.whole {
            return Err(Stop::Ends);
        }
        self.at = at;
        Ok(self.since(start))
    }

    /// The end of a token that goes on here with what may be a control character: it can have none.
    #[cold]
    fn end_of_doubtful(&self, at: usize) -> Result<usize, Stop> {
        let ends = |class| matches!(class, Class::Space | Class::Mark);
        let rest = &self.text[at..];
        let length = rest
            .bytes()
            .position(|byte| ends(CLASSES[usize::from(byte)]));
        let length = length.unwrap_or(rest.len());
        match rest[..length].find(is_obeyed) {
            Some(control) => self.wrong(at + control, "a control character in a word"),
            None => Ok(at + length),
        }
    }

    /// Passes a character: a backslash, any one character, and the rest of its name.
    fn character(&mut self) -> Result<(), Stop> {
        self.at += 1;
        let first = self.text[self.at..].chars().next().ok_or(Stop::Ends)?;
        self.at += first.len_utf8();
        self.token().map(drop)
    }

    /// The form that begins here.
    #[inline]
    pub(crate) fn value(&mut self) -> Result<Value<'a>, Stop> {
        let start = self.at;
        match self.byte()? {
            b'"' => self.string().map(Value::Text),
            b':' => self.keyword().map(|name| Value::Keyword(name.into())),
            b'0'..=b'9' | b'+' | b'-' => {
                let token = self.token()?;
                Ok(integer(token).map_or(Value::Other(token.into()), Value::Integer))
            }
            b'[' => self.list(b']'),
            b'(' => self.list(b')'),
            b'{' => self.map(),
            b'#' | b'\\' => {
                if self.record()? {
                    return self.map();
                }
                self.at = start;
                self.skip()?;
                Ok(Value::Other(self.since(start).into()))
            }
            byte @ (b']' | b')' | b'}') => self.unopened(byte),
            _ => Ok(match self.token()? {
                "nil" => Value::Nil,
                "true" => Value::Bool(true),
                "false" => Value::Bool(false),
                symbol => Value::Other(symbol.into()),
            }),
        }
    }

    /// Passes the tag of a Clojure record, `#jepsen.history.Op{…}`, up to its map: a class has a dot in its name, and a
    /// tag that a library gave (`#its/name {…}`) has a slash. Where there is none, the place is of no use.
    pub(crate) fn record(&mut self) -> Result<bool, Stop> {
        if self.byte()? != b'#' {
            return Ok(false);
        }
        self.at += 1;
        let name = self.token()?;
        if name.contains('/') || !name.contains('.') {
            return Ok(false);
        }
        self.space()?;
        Ok(self.byte()? == b'{')
    }

    /// The keyword that begins here, without its colon.
    #[inline]
    pub(crate) fn keyword(&mut self) -> Result<&'a str, Stop> {
        let start = self.at;
        let name = &self.token()?[1..];
        if name.is_empty() {
            return self.wrong(start, "a keyword without a name");
        }
        Ok(name)
    }

    /// The string that begins here, its escapes resolved.
    #[inline]
    pub(crate) fn string(&mut self) -> Result<Cow<'a, str>, Stop> {
        let start = self.at + 1;
        let escape = self.skip_string()?;
        let text = &self.text[start..self.at - 1];
        match escape {
            None => Ok(Cow::Borrowed(text)),
            Some(_) => match unescaped(text) {
                Ok(text) => Ok(Cow::Owned(text)),
                Err((at, message)) => self.wrong(start + at, message),
            },
        }
    }

    fn list(&mut self, closing: u8) -> Result<Value<'a>, Stop> {
        self.enter()?;
        self.at += 1;
        let mut items = Vec::new();
        while self.item(closing)? {
            items.push(self.value()?);
        }
        self.depth -= 1;
        Ok(Value::List(items))
    }

    fn map(&mut self) -> Result<Value<'a>, Stop> {
        self.enter()?;
        self.at += 1;
        let mut pairs = Vec::new();
        while self.item(b'}')? {
            let key = self.value()?;
            self.value_of_key()?;
            pairs.push((key, self.value()?));
        }
        self.depth -= 1;
        Ok(Value::Map(pairs))
    }

    /// Passes up to the value of the key that was passed.
    #[inline]
    pub(crate) fn value_of_key(&mut self) -> Result<(), Stop> {
        self.space()?;
        match self.byte()? {
            b'}' => self.wrong(self.at, "a key without a value"),
            _ => Ok(()),
        }
    }
}

impl<'a> Value<'a> {
    /// The one value that a text of EDN is: `nil`, `[1 :b "c"]`. What the text has of white, comments and discarded forms
    /// around it says nothing.
    ///
    /// # Errors
    /// When it is none, or more than one.
    pub fn parse(text: &'a str) -> Result<Value<'a>, Mistake> {
        let mut parser = Parser::new(text, 0, true);
        let parsed = parser.space().and_then(|()| parser.value());
        let alone = parsed.and_then(|value| parser.space().map(|()| value));
        match alone {
            Ok(value) if parser.at == text.len() => Ok(value),
            Ok(_) => Err(Mistake {
                at: parser.at,
                message: "there is more after the value".into(),
            }),
            Err(Stop::Wrong(mistake)) => Err(mistake),
            Err(Stop::Ends) => Err(Mistake {
                at: text.len(),
                message: "the text ends too early".into(),
            }),
        }
    }
}

#[cfg(test)]
mod tests;
