//! What came out, for people and for machines: a [`Judgement`] for each history, a [`SuiteReport`] for many.

mod judgement;
mod matrix;
mod model_judgement;
mod page;
mod standing;
mod text;

use std::io::{self, ErrorKind};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::Result;

use crate::exit::{Unreadable, UsageError};

pub use judgement::{Class, JudgedProperty, Judgement, SCHEMA_VERSION, judge, judge_properties};
pub use matrix::{CellReport, SuiteReport};
pub use model_judgement::ModelJudgement;
pub use page::{Page, table};
pub use standing::by_contract;
pub use text::word;

/// An instant as RFC 3339 in UTC, to the millisecond.
pub fn rfc3339(time: SystemTime) -> String {
    let since = time
        .duration_since(SystemTime::UNIX_EPOCH)
        .unwrap_or_default();
    let (days, seconds) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    let (year, month, day) = civil(days);
    format!(
        "{year:04}-{month:02}-{day:02}T{:02}:{:02}:{:02}.{:03}Z",
        seconds / 3600,
        seconds / 60 % 60,
        seconds % 60,
        since.subsec_millis()
    )
}

/// Year, month and day of a day counted from 1970-01-01 (Howard Hinnant, "chrono-compatible low-level date algorithms",
/// `civil_from_days`, for days that are not negative).
fn civil(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, day_of_era) = (days / 146_097, days % 146_097);
    let year_of_era =
        (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let month_from_march = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month_from_march + 2) / 5 + 1;
    let month = if month_from_march < 10 {
        month_from_march + 3
    } else {
        month_from_march - 9
    };
    let year = year_of_era + era * 400 + u64::from(month <= 2);
    (year, month, day)
}

/// The longest `verdict.json` that is read, in bytes; they have a few thousand.
const VERDICT_BYTES_MAX: u64 = 16 << 20;

/// All `verdict.json` under a folder, with what they hold, in the order of their paths; what can't be read is left out.
///
/// # Errors
/// [`UsageError`] where there is no such folder, [`Unreadable`] where it cannot be read.
pub fn saved_verdicts(out: &Path) -> Result<Vec<(PathBuf, serde_json::Value)>> {
    let mut found = Vec::new();
    let folders = |path: &Path| -> io::Result<Vec<PathBuf>> {
        let mut folders: Vec<PathBuf> = std::fs::read_dir(path)?
            .filter_map(|entry| entry.ok())
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .collect();
        folders.sort();
        Ok(folders)
    };
    let scenarios = folders(out).map_err(|error| no_folder(out, error))?;
    for scenario in scenarios {
        for run in folders(&scenario).unwrap_or_default() {
            let path = run.join("verdict.json");
            if !path.is_symlink()
                && let Ok(text) = histories::read_small(&path, VERDICT_BYTES_MAX)
                && let Ok(verdict) = serde_json::from_str(&text)
            {
                found.push((path, verdict));
            }
        }
    }
    Ok(found)
}

/// Why a folder that was named cannot be looked into.
fn no_folder(path: &Path, source: io::Error) -> anyhow::Error {
    let shown = path.display();
    match source.kind() {
        ErrorKind::NotFound => UsageError(format!("{shown}: there is no such folder")).into(),
        ErrorKind::NotADirectory => UsageError(format!("{shown} is no folder")).into(),
        _ => Unreadable {
            path: path.to_owned(),
            source,
        }
        .into(),
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn dates_are_right_across_leap_years() {
        let at = |seconds, ms| {
            rfc3339(
                SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_millis(ms),
            )
        };
        assert_eq!(at(0, 0), "1970-01-01T00:00:00.000Z");
        assert_eq!(at(951_782_400, 7), "2000-02-29T00:00:00.007Z");
        assert_eq!(at(1_709_251_199, 999), "2024-02-29T23:59:59.999Z");
        assert_eq!(at(4_107_542_400, 0), "2100-03-01T00:00:00.000Z");
    }
}
