//! One build of one stage, by the daemon's classic builder, which every Engine has.

use std::collections::{HashMap, VecDeque};

use bollard::body_full;
use bollard::query_parameters::{BuildImageOptions, BuildImageOptionsBuilder};
use futures_util::StreamExt as _;

use super::context;
use crate::{Engine, Error, Progress};

/// How many of the last lines of a build's output stand in its error.
const LINES_IN_ERROR: usize = 20;

/// The arguments of every build with which the daemon reaches the network as this process would.
const PROXIES: [&str; 6] = [
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
];

/// Builds a stage of the Dockerfile on a base image, and names the result if it gets a name.
///
/// When this is dropped the connection closes, upon which the daemon stops the build and removes its container.
///
/// # Errors
/// [`Error::Build`], with the end of the output; [`Error::DiskFull`].
pub(super) async fn build(
    engine: &Engine,
    stage: &str,
    base: &str,
    name: Option<&str>,
    progress: &dyn Progress,
) -> Result<(), Error> {
    let context = context::archive().await?;
    let mut answers = engine.docker().build_image(
        options(stage, base, name),
        None,
        Some(body_full(context.into())),
    );
    let mut last_lines = LastLines::default();
    while let Some(answer) = answers.next().await {
        let text = match answer {
            Ok(info) => info.stream.or(info.status).unwrap_or_default(),
            Err(reply) => return Err(failure(stage, &reply.to_string(), last_lines)),
        };
        for line in text
            .lines()
            .map(str::trim_end)
            .filter(|line| !line.is_empty())
        {
            progress.detail(&format!("{stage}: {line}"));
            last_lines.push(line);
        }
    }
    Ok(())
}

fn options(stage: &str, base: &str, name: Option<&str>) -> BuildImageOptions {
    let mut arguments = HashMap::from([("BASE".to_owned(), base.to_owned())]);
    arguments.extend(
        PROXIES
            .iter()
            .filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))),
    );
    let options = BuildImageOptionsBuilder::default()
        .dockerfile("Dockerfile")
        .target(stage)
        .buildargs(&arguments)
        .rm(true)
        .forcerm(true);
    match name {
        Some(name) => options.t(name).build(),
        None => options.build(),
    }
}

fn failure(stage: &str, reason: &str, last_lines: LastLines) -> Error {
    let output = last_lines.0.into_iter().collect::<Vec<_>>().join("\n");
    if format!("{reason}\n{output}")
        .to_lowercase()
        .contains("no space left on device")
    {
        return Error::DiskFull {
            doing: format!("building image `{stage}`"),
            reason: "no space left on device".to_owned(),
        };
    }
    Error::Build {
        stage: stage.to_owned(),
        reason: reason.to_owned(),
        output,
    }
}

/// The last lines of a build's output.
#[derive(Default)]
struct LastLines(VecDeque<String>);

impl LastLines {
    fn push(&mut self, line: &str) {
        if self.0.len() == LINES_IN_ERROR {
            self.0.pop_front();
        }
        self.0.push_back(line.to_owned());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failure_shows_the_last_lines() {
        let mut lines = LastLines::default();
        (1..=30).for_each(|line| lines.push(&format!("line {line}")));
        let error = failure("redis", "returned a non-zero code: 100", lines).to_string();
        assert!(
            error.contains("image `redis` does not build: returned a non-zero code: 100"),
            "{error}"
        );
        assert!(
            error.contains("line 11\n")
                && error.ends_with("line 30")
                && !error.contains("line 10\n"),
            "{error}"
        );
    }

    #[test]
    fn a_full_disk_is_said_to_be_one() {
        let mut lines = LastLines::default();
        lines.push("E: Write error - write (28: No space left on device)");
        let error = failure("redis", "returned a non-zero code: 100", lines);
        assert!(matches!(error, Error::DiskFull { .. }), "{error:?}");
    }
}
