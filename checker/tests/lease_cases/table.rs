//! The table of docs/verdicts.md, and what is near to each of its cases.

use checker::Answer::{self, Holds, Unknown, Violated};

/// All cases.
pub fn cases() -> impl Iterator<Item = &'static Case> {
    REQUESTS.iter().chain(moments::MOMENTS)
}

/// A history, and what is said of it.
pub struct Case {
    pub name: &'static str,
    pub says: Answer,
    pub timeline: &'static str,
}

/// The cases of which a stream may say that it cannot tell.
pub const STREAM_CANNOT_TELL: &[&str] = &[
    "a hold begins at the instant at which one is released, the other way round",
    "a hold begins at the instant at which one is lost, the other way round",
    "a client's own second grant, and an extension of the first",
];

macro_rules! cases {
    ($($name:literal $says:ident $timeline:literal)*) => {
        &[$(Case { name: $name, says: $says, timeline: $timeline }),*]
    };
}

mod moments;

const REQUESTS: &[Case] = cases! {
    "granted while another certainly holds" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     20 c2 acquire#2
     22 c2 acquire#2 ok validity=120"

    "granted after the validity" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     20 c2 acquire#2
     102 c2 acquire#2 ok validity=200"

    "over on arrival, within another's hold" Violated
    "10 c1 acquire#1
     20 c2 acquire#2
     22 c2 acquire#2 ok validity=300
     150 c1 acquire#1 ok validity=100"

    "over on arrival, and over before another's hold" Holds
    "10 c1 acquire#1
     90 c2 acquire#2
     110 c2 acquire#2 ok validity=300
     150 c1 acquire#1 ok validity=100"

    "over on arrival, and over when another's hold begins" Holds
    "10 c1 acquire#1
     90 c2 acquire#2
     100 c2 acquire#2 ok validity=300
     150 c1 acquire#1 ok validity=100"

    "over on arrival, and over just after another's hold begins" Violated
    "10 c1 acquire#1
     90 c2 acquire#2
     99 c2 acquire#2 ok validity=300
     150 c1 acquire#1 ok validity=100"

    "over on arrival, whatever its validity, and asked for and answered within another's hold" Violated
    "1 c2 acquire#2
     2 c2 acquire#2 ok validity=300
     50 c1 acquire#1
     60 c1 acquire#1 ok validity=1"

    "over on arrival, and asked for when another's hold begins" Violated
    "1 c2 acquire#2
     50 c2 acquire#2 ok validity=300
     50 c1 acquire#1
     60 c1 acquire#1 ok validity=20"

    "over on arrival by a validity before it, and asked for before another's hold" Holds
    "1 c2 acquire#2
     49 c1 acquire#1
     50 c2 acquire#2 ok validity=300
     60 c1 acquire#1 ok validity=20"

    "released at the instant at which it arrived, within another's hold" Violated
    "1 c2 acquire#2
     2 c2 acquire#2 ok validity=300
     50 c1 acquire#1
     60 c1 acquire#1 ok validity=350
     60 c1 release#3 grant=1
     61 c1 release#3 ok"

    "lost at the instant at which it arrived, within another's hold" Violated
    "1 c2 acquire#2
     2 c2 acquire#2 ok validity=300
     50 c1 acquire#1
     60 c1 acquire#1 ok validity=350
     60 c1 lost#3 info grant=1"

    "lost at the instant at which it arrived, and asked for before another's hold" Violated
    "1 c2 acquire#2
     50 c1 acquire#1
     52 c2 acquire#2 ok validity=300
     60 c1 acquire#1 ok validity=350
     60 c1 lost#3 info grant=1"

    "over on arrival, after another's hold" Holds
    "10 c1 acquire#1
     20 c2 acquire#2
     22 c2 acquire#2 ok validity=80
     150 c1 acquire#1 ok validity=100"

    "over on arrival, at the end of another's hold" Holds
    "10 c1 acquire#1
     20 c2 acquire#2
     22 c2 acquire#2 ok validity=150
     150 c1 acquire#1 ok validity=100"

    "over on arrival, and asked so long that another's hold ended meanwhile" Holds
    "10 c1 acquire#1
     20 c2 acquire#2
     22 c2 acquire#2 ok validity=120
     150 c1 acquire#1 ok validity=100"

    "two that were over on arrival" Holds
    "10 c1 acquire#1
     20 c2 acquire#2
     140 c2 acquire#2 ok validity=110
     150 c1 acquire#1 ok validity=100"

    "over on arrival, and extended" Violated
    "10 c1 acquire#1
     110 c1 acquire#1 ok validity=100
     120 c2 acquire#2
     125 c2 acquire#2 ok validity=300
     130 c1 extend#3 grant=1 ttl_ms=100
     140 c1 extend#3 ok validity=230"

    "an extension that succeeded after another had the lock" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     110 c2 acquire#2
     112 c2 acquire#2 ok validity=200
     120 c2 release#3 grant=2
     122 c2 release#3 ok
     130 c1 extend#4 grant=1 ttl_ms=100
     132 c1 extend#4 ok validity=230"

    "an extension that was asked for before another had the lock" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     95 c1 extend#4 grant=1 ttl_ms=100
     110 c2 acquire#2
     112 c2 acquire#2 ok validity=300
     132 c1 extend#4 ok validity=195"

    "an extension to before another had the lock" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     95 c1 extend#4 grant=1 ttl_ms=100
     205 c2 acquire#2
     207 c2 acquire#2 ok validity=300
     232 c1 extend#4 ok validity=195"

    "an extension after the validity" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     110 c1 extend#4 grant=1 ttl_ms=100
     112 c1 extend#4 ok validity=200
     210 c2 acquire#2
     212 c2 acquire#2 ok validity=300"

    "another within an extension" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     50 c1 extend#4 grant=1 ttl_ms=100
     52 c1 extend#4 ok validity=150
     110 c2 acquire#2
     112 c2 acquire#2 ok validity=300"

    "an extension that shortened the validity" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 extend#4 grant=1 ttl_ms=40
     52 c1 extend#4 ok validity=90
     110 c2 acquire#2
     112 c2 acquire#2 ok validity=300"

    "an extension that shortened the validity before its answer" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 extend#4 grant=1 ttl_ms=40
     110 c2 acquire#2
     112 c2 acquire#2 ok validity=300
     152 c1 extend#4 ok validity=90"

    "an extension of unknown outcome that would have shortened the validity" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 extend#4 grant=1 ttl_ms=40
     52 c1 extend#4 info
     110 c2 acquire#2
     112 c2 acquire#2 ok validity=300"

    "the same, and another before" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 extend#4 grant=1 ttl_ms=40
     52 c1 extend#4 info
     80 c2 acquire#2
     82 c2 acquire#2 ok validity=300"

    "an extension of unknown outcome to nobody knows when" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 extend#4 grant=1
     60 c2 acquire#2
     62 c2 acquire#2 ok validity=300"

    "an extension of unknown outcome prolongs nothing" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     50 c1 extend#4 grant=1 ttl_ms=100
     52 c1 extend#4 info
     110 c2 acquire#2
     112 c2 acquire#2 ok validity=300"

    "an extension that certainly failed" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 extend#4 grant=1 ttl_ms=40
     52 c1 extend#4 fail error=down
     110 c2 acquire#2
     112 c2 acquire#2 ok validity=400"

    "an extension that certainly failed after another had the lock" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 extend#4 grant=1 ttl_ms=40
     110 c2 acquire#2
     112 c2 acquire#2 ok validity=400
     120 c1 extend#4 fail error=down"

    "an extension that failed because the lock was lost" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 extend#4 grant=1 ttl_ms=100
     52 c1 extend#4 fail lost=true error=gone
     110 c2 acquire#2
     112 c2 acquire#2 ok validity=400"

    "the same, and another before the answer" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 extend#4 grant=1 ttl_ms=300
     55 c2 acquire#2
     56 c2 acquire#2 ok validity=400
     60 c1 extend#4 fail lost=true error=gone"

    "a release" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 release#4 grant=1
     55 c2 acquire#2
     56 c2 acquire#2 ok validity=400
     60 c1 release#4 ok"

    "a release after the validity, when another has the lock" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     110 c2 acquire#2
     112 c2 acquire#2 ok validity=400
     120 c1 release#4 grant=1
     122 c1 release#4 ok"

    "a release of unknown outcome" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 release#4 grant=1
     52 c1 release#4 info
     55 c2 acquire#2
     56 c2 acquire#2 ok validity=400"

    "a release that never returned, and a grant after it" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 release#4 grant=1
     55 c2 acquire#2
     56 c2 acquire#2 ok validity=400"

    "an extension after a release of unknown outcome" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 release#4 grant=1
     52 c1 release#4 info
     55 c2 acquire#2
     56 c2 acquire#2 ok validity=80
     90 c1 extend#5 grant=1 ttl_ms=100
     91 c1 extend#5 ok validity=190"

    "a release that certainly failed" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 release#4 grant=1
     52 c1 release#4 fail error=down
     55 c2 acquire#2
     56 c2 acquire#2 ok validity=400"

    "a release that certainly failed when another had the lock" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 release#4 grant=1
     55 c2 acquire#2
     56 c2 acquire#2 ok validity=400
     60 c1 release#4 fail error=down"

    "a release that certainly failed, and the validity over" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     50 c1 release#4 grant=1
     60 c1 release#4 fail error=down
     110 c2 acquire#2
     112 c2 acquire#2 ok validity=400"

    "a release that failed because the lock was lost" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 release#4 grant=1
     55 c2 acquire#2
     56 c2 acquire#2 ok validity=400
     60 c1 release#4 fail lost=true error=gone"

    "the same, and another before it was asked for" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     45 c2 acquire#2
     46 c2 acquire#2 ok validity=400
     50 c1 release#4 grant=1
     60 c1 release#4 fail lost=true error=gone"

    "a release that names another lock" Unknown
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 release#4 grant=1 lock=m
     60 c1 release#4 ok"

    "an extension that names another lock" Unknown
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 extend#4 grant=1 lock=m
     60 c1 extend#4 ok validity=350"
};
