//! Lengths of time as a scenario writes them: `500ms`, `2s`, `0.5 ttl`, `ttl + 200ms`.
//!
//! A length is a sum of terms, each a number and a unit, joined by `+` or `-`. Units are `ms`, `s`, `min` and `ttl`,
//! the time to live that the run ends up with. `ttl` alone is `1 ttl`; a number has at most three decimals.

use std::fmt;

/// So much is `1 ttl` or `1ms` inside a [`Length`].
const THOUSAND: i64 = 1000;

/// A length of time, part of it in multiples of the TTL, exact to a thousandth of the TTL and to a microsecond.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Length {
    /// Thousandths of the TTL.
    ttl_thousandths: i64,
    /// Microseconds.
    micros: i64,
}

impl Length {
    /// A length in milliseconds.
    pub const fn from_ms(ms: i64) -> Length {
        Length {
            ttl_thousandths: 0,
            micros: ms * THOUSAND,
        }
    }

    /// A length of `ttls` times the TTL and `ms` milliseconds.
    pub const fn from_ttl_and_ms(ttls: i64, ms: i64) -> Length {
        Length {
            ttl_thousandths: ttls * THOUSAND,
            micros: ms * THOUSAND,
        }
    }

    /// Whether it depends on the TTL.
    pub fn is_relative(self) -> bool {
        self.ttl_thousandths != 0
    }

    /// The length in milliseconds, to the nearest, for a TTL of `ttl_ms` milliseconds.
    pub fn ms(self, ttl_ms: u64) -> i64 {
        let ttl_ms = i64::try_from(ttl_ms).unwrap_or(i64::MAX);
        let of_ttl = self.ttl_thousandths.saturating_mul(ttl_ms);
        let thousandths = of_ttl.saturating_add(self.micros);
        thousandths
            .saturating_add(THOUSAND / 2)
            .div_euclid(THOUSAND)
    }

    /// Reads a length; the error says what is wrong with the text.
    pub fn parse(text: &str) -> Result<Length, String> {
        let mut length = Length::default();
        let mut rest = text.trim();
        let mut sign = take_sign(&mut rest).unwrap_or(1);
        loop {
            let term = take_term(&mut rest, text)?;
            length = length
                .plus(term, sign)
                .ok_or_else(|| format!("`{text}` is too large"))?;
            match take_sign(&mut rest) {
                Some(next) => sign = next,
                None if rest.is_empty() => return Ok(length),
                None => {
                    return Err(format!(
                        "`{text}` is no length of time: `{rest}` needs a `+` or `-` before it"
                    ));
                }
            }
        }
    }

    /// This and `sign` times another; `None` where that is too much.
    pub(super) fn plus(self, term: Length, sign: i64) -> Option<Length> {
        let add = |sum: i64, term: i64| sum.checked_add(term.checked_mul(sign)?);
        Some(Length {
            ttl_thousandths: add(self.ttl_thousandths, term.ttl_thousandths)?,
            micros: add(self.micros, term.micros)?,
        })
    }
}

/// Takes a sign and the space around it off the front of `rest`.
fn take_sign(rest: &mut &str) -> Option<i64> {
    let trimmed = rest.trim_start();
    let sign = match trimmed.chars().next()? {
        '+' => 1,
        '-' => -1,
        _ => return None,
    };
    *rest = trimmed[1..].trim_start();
    Some(sign)
}

/// Takes one number with its unit off the front of `rest`.
fn take_term(rest: &mut &str, text: &str) -> Result<Length, String> {
    let digits = take_while(rest, |c| c.is_ascii_digit() || c == '.');
    *rest = rest.trim_start();
    let unit = take_while(rest, char::is_alphabetic);
    *rest = rest.trim_start();
    let number = match digits {
        "" if unit == "ttl" => THOUSAND,
        "" => return Err(no_length(text)),
        _ => thousandths(digits).ok_or_else(|| {
            format!(
                "`{text}` has the odd number `{digits}`: at most nine digits and three decimals"
            )
        })?,
    };
    let micros = match unit {
        "ttl" => {
            return Ok(Length {
                ttl_thousandths: number,
                micros: 0,
            });
        }
        "ms" => number,
        "s" => number * 1000,
        "min" => number * 60 * 1000,
        "" => return Err(format!("`{text}` lacks a unit: `ms`, `s`, `min` or `ttl`")),
        _ => {
            return Err(format!(
                "`{text}` has the unknown unit `{unit}`: there is `ms`, `s`, `min` and `ttl`"
            ));
        }
    };
    Ok(Length {
        ttl_thousandths: 0,
        micros,
    })
}

fn no_length(text: &str) -> String {
    format!(
        "`{text}` is no length of time: write it like `500ms`, `2s`, `0.5 ttl` or `ttl + 200ms`"
    )
}

fn take_while<'t>(rest: &mut &'t str, belongs: impl Fn(char) -> bool) -> &'t str {
    let end = rest.find(|c| !belongs(c)).unwrap_or(rest.len());
    let (taken, left) = rest.split_at(end);
    *rest = left;
    taken
}

/// `1.25` as 1250.
fn thousandths(number: &str) -> Option<i64> {
    let (whole, decimals) = number.split_once('.').unwrap_or((number, "0"));
    let fits = !whole.is_empty() && whole.len() <= 9 && (1..=3).contains(&decimals.len());
    if !fits {
        return None;
    }
    let whole: i64 = whole.parse().ok()?;
    let decimals: i64 = format!("{decimals:0<3}").parse().ok()?;
    Some(whole * THOUSAND + decimals)
}

impl fmt::Display for Length {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let ttl = (self.ttl_thousandths != 0).then(|| match self.ttl_thousandths {
            THOUSAND => "ttl".to_owned(),
            thousandths => format!("{} ttl", decimal(thousandths)),
        });
        let sign = if self.micros < 0 { '-' } else { '+' };
        match (ttl, self.micros) {
            (None, micros) => write!(formatter, "{}ms", decimal(micros)),
            (Some(ttl), 0) => formatter.write_str(&ttl),
            (Some(ttl), micros) => write!(formatter, "{ttl} {sign} {}ms", decimal(micros.abs())),
        }
    }
}

/// 1250 as `1.25`.
fn decimal(thousandths: i64) -> String {
    let sign = if thousandths < 0 { "-" } else { "" };
    let (whole, decimals) = (
        thousandths.unsigned_abs() / 1000,
        thousandths.unsigned_abs() % 1000,
    );
    let number = format!("{sign}{whole}.{decimals:03}");
    number
        .trim_end_matches('0')
        .trim_end_matches('.')
        .to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(text: &str, ttl_ms: u64) -> i64 {
        Length::parse(text).unwrap().ms(ttl_ms)
    }

    #[test]
    fn reads_what_people_write() {
        assert_eq!(ms("500ms", 300), 500);
        assert_eq!(ms("500 ms", 300), 500);
        assert_eq!(ms("2s", 300), 2_000);
        assert_eq!(ms("1.5s", 300), 1_500);
        assert_eq!(ms("1min", 300), 60_000);
        assert_eq!(ms("ttl", 300), 300);
        assert_eq!(ms("0.5 ttl", 300), 150);
        assert_eq!(ms("10ttl+5s", 300), 8_000);
        assert_eq!(ms(" 2 ttl - 100ms ", 300), 500);
        assert_eq!(ms("+30s", 300), 30_000);
        assert_eq!(ms("-10 ttl", 300), -3_000);
        assert_eq!(ms("0.333 ttl", 1000), 333);
    }

    #[test]
    fn says_what_is_wrong() {
        let error = |text: &str| Length::parse(text).unwrap_err();
        assert_eq!(
            error("soon"),
            "`soon` is no length of time: write it like `500ms`, `2s`, `0.5 ttl` or `ttl + 200ms`"
        );
        assert_eq!(
            error("500"),
            "`500` lacks a unit: `ms`, `s`, `min` or `ttl`"
        );
        assert_eq!(
            error("5 hours"),
            "`5 hours` has the unknown unit `hours`: there is `ms`, `s`, `min` and `ttl`"
        );
        assert_eq!(
            error("1.2345s"),
            "`1.2345s` has the odd number `1.2345`: at most nine digits and three decimals"
        );
        assert_eq!(
            error("ttl 200ms"),
            "`ttl 200ms` is no length of time: `200ms` needs a `+` or `-` before it"
        );
        for text in [
            "",
            "+",
            "ttl +",
            "1..5s",
            ".5s",
            "5.s",
            "9999999999s",
            "ms",
            "1 2 s",
        ] {
            assert!(Length::parse(text).is_err(), "`{text}` was read");
        }
    }

    proptest! {
        #[test]
        fn what_it_prints_it_reads(ttl_thousandths in -99_999_999_i64..99_999_999, micros in -99_999_999_i64..99_999_999) {
            let length = Length { ttl_thousandths, micros };
            prop_assert_eq!(Length::parse(&length.to_string()), Ok(length));
        }

        #[test]
        fn never_panics(text in "[-+. 0-9a-zé]{0,24}", ttl_ms: u64) {
            if let Ok(length) = Length::parse(&text) {
                length.ms(ttl_ms);
            }
        }

        #[test]
        fn any_unicode_never_panics(text in "\\PC{0,24}") {
            let _ = Length::parse(&text);
        }

        #[test]
        fn a_sum_is_the_sum_of_its_terms(a in 0_i64..1_000_000, b in 0_i64..1_000, ttl_ms in 1_u64..100_000) {
            let sum = Length::parse(&format!("{b} ttl + {a}ms")).unwrap().ms(ttl_ms);
            prop_assert_eq!(sum, a + b * ttl_ms as i64);
        }
    }
}
