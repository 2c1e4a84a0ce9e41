//! Named histories.
