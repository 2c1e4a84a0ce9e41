//! How far a search may go.

/// How much a search may take before it gives up, with [`Decision::Unknown`](super::super::Decision::Unknown). The search
/// for a violation's calls has limits of its own.
#[derive(Clone, Copy)]
pub struct Limits<'a> {
    /// How many configurations each search may look at: there may be two beside each other, and more for the longest prefix.
    pub configurations: u64,
    /// About how many bytes the configurations that are kept may take. What a state owns elsewhere is not counted.
    pub bytes: usize,
    /// Asked every now and then whether to go on, with the reason if not: for a limit on time, since a search knows no clock.
    pub interrupted: Option<&'a (dyn Fn() -> Option<String> + Sync)>,
}

impl Default for Limits<'_> {
    fn default() -> Self {
        Limits {
            configurations: 2_000_000_000,
            bytes: 2 << 30,
            interrupted: None,
        }
    }
}

impl Limits<'_> {
    /// Why the search has to stop, if it has to.
    pub(super) fn passed(&self, configurations: u64, bytes: usize) -> Option<String> {
        if configurations > self.configurations {
            return Some(format!(
                "the search looked at more than {} configurations",
                self.configurations
            ));
        }
        if bytes > self.bytes {
            return Some("the search needs more memory than it may have".to_owned());
        }
        self.interrupted.and_then(|interrupted| interrupted())
    }
}
