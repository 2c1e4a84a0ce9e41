//! What came out, for people and for machines: a [`Judgement`] for each history, a [`SuiteReport`] for many.

mod judgement;
mod matrix;
mod model_judgement;
mod text;

use std::path::{Path, PathBuf};
use std::time::SystemTime;

use anyhow::{Context, Result};

pub use judgement::{Class, JudgedProperty, Judgement, SCHEMA_VERSION, judge, judge_properties};
pub use matrix::{CellReport, SuiteReport};
pub use model_judgement::ModelJudgement;
pub use text::table;

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

/// All `verdict.json` under a folder, with what they hold, in the order of their paths; what can't be read is left out.
pub fn saved_verdicts(out: &Path) -> Result<Vec<(PathBuf, serde_json::Value)>> {
    let mut found = Vec::new();
    let folders = |path: &Path| -> Result<Vec<PathBuf>> {
        let entries =
            std::fs::read_dir(path).with_context(|| format!("look into {}", path.display()))?;
        let mut folders: Vec<PathBuf> = entries
            .filter_map(|entry| entry.ok())
            .filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_dir()))
            .map(|entry| entry.path())
            .collect();
        folders.sort();
        Ok(folders)
    };
    if !out.exists() {
        return Ok(found);
    }
    for scenario in folders(out)? {
        for run in folders(&scenario)? {
            let path = run.join("verdict.json");
            if let Ok(text) = std::fs::read_to_string(&path)
                && let Ok(verdict) = serde_json::from_str(&text)
            {
                found.push((path, verdict));
            }
        }
    }
    Ok(found)
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
