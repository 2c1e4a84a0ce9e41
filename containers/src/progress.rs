//! How what takes long tells what it is doing.

/// Told what is going on; called from any thread.
pub trait Progress: Send + Sync {
    /// A step begins, such as "building image redis".
    fn step(&self, what: &str);

    /// Something that the running step wrote: one line without its end.
    fn detail(&self, line: &str);
}

/// Says nothing.
impl Progress for () {
    fn step(&self, _what: &str) {}

    fn detail(&self, _line: &str) {}
}
