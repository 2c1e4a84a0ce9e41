//! containers
