//! What the fuzz targets hold the project to. Each target is a line over one of these modules.

pub mod agreement;
pub mod checking;
pub mod deciding;
pub mod models;
pub mod reading;

/// Has searches run on one thread: an input does the same every time, and the many small ones are not slowed down by
/// threads that wait for work.
pub fn one_thread() {
    let built = rayon::ThreadPoolBuilder::new()
        .num_threads(1)
        .build_global();
    built.expect("nothing else has built the pool before");
}
