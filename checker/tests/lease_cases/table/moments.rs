//! Edges, losses, deaths, renewals, and several grants and clients.

use super::Case;
use checker::Answer::{Holds, Violated};

pub const MOMENTS: &[Case] = cases! {
    "a hold begins at the instant of a validity's end" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     90 c2 acquire#2
     100 c2 acquire#2 ok validity=400"

    "a hold begins just before a validity's end" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     90 c2 acquire#2
     99.999 c2 acquire#2 ok validity=400"

    "a hold begins at the instant at which one is released" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     20 c2 acquire#2
     50 c1 release#3 grant=1
     50 c2 acquire#2 ok validity=400
     52 c1 release#3 ok"

    "a hold begins at the instant at which one is released, the other way round" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     20 c2 acquire#2
     50 c2 acquire#2 ok validity=400
     50 c1 release#3 grant=1
     52 c1 release#3 ok"

    "a hold begins at the instant at which one is lost, the other way round" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     20 c2 acquire#2
     50 c2 acquire#2 ok validity=400
     50 c1 lost#3 info grant=1"

    "a loss before the validity, and a grant after it" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 lost#3 info grant=1
     60 c2 acquire#2
     62 c2 acquire#2 ok validity=400"

    "a grant before the client learned of its loss" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     40 c2 acquire#2
     42 c2 acquire#2 ok validity=400
     50 c1 lost#3 info grant=1"

    "a loss of another grant" Violated
    "1 c1 acquire#9
     2 c1 acquire#9 ok validity=300
     3 c1 release#8 grant=9
     4 c1 release#8 ok
     10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 lost#3 info grant=9
     60 c2 acquire#2
     62 c2 acquire#2 ok validity=400"

    "a loss while an extension is in flight that had closed a gap" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=30
     35 c1 extend#3 grant=1 ttl_ms=100
     40 c2 acquire#2
     42 c2 acquire#2 ok validity=45
     50 c1 lost#4 info grant=1
     60 c1 extend#3 ok validity=135"

    "a held that is answered with no" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     48 c1 held#3 grant=1
     50 c1 held#3 ok held=false
     60 c2 acquire#2
     62 c2 acquire#2 ok validity=400"

    "a held that is answered with yes" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     48 c1 held#3 grant=1
     50 c1 held#3 ok held=true
     60 c2 acquire#2
     62 c2 acquire#2 ok validity=400"

    "the exit of a client" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 c1 exit#3 info
     60 c2 acquire#2
     62 c2 acquire#2 ok validity=400"

    "the exit of another client" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     45 c3 acquire#5
     46 c3 acquire#5 fail error=busy
     50 c3 exit#3 info
     60 c2 acquire#2
     62 c2 acquire#2 ok validity=400"

    "the crash of a client" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 nemesis inject#3 step=0 fault=crash on=c1 does=kills
     52 nemesis inject#3 ok step=0 fault=crash on=c1 does=kills
     60 c2 acquire#2
     62 c2 acquire#2 ok validity=400"

    "a grant to a client that is being killed, while another holds" Violated
    "1 c2 acquire#2
     2 c2 acquire#2 ok validity=400
     10 c1 acquire#1
     11 nemesis inject#3 step=0 fault=crash on=c1 does=kills
     12 c1 acquire#1 ok validity=300
     52 nemesis inject#3 ok step=0 fault=crash on=c1 does=kills"

    "a grant to a client that is being killed ends at once" Holds
    "1 c2 acquire#4
     2 c2 acquire#4 ok validity=100
     3 c2 release#5 grant=4
     4 c2 release#5 ok
     10 c1 acquire#1
     11 nemesis inject#3 step=0 fault=crash on=c1 does=kills
     12 c1 acquire#1 ok validity=300
     52 nemesis inject#3 ok step=0 fault=crash on=c1 does=kills
     60 c2 acquire#2
     62 c2 acquire#2 ok validity=400"

    "a pause of a client" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 nemesis inject#3 step=0 fault=pause on=c1 does=stops
     52 nemesis inject#3 ok step=0 fault=pause on=c1 does=stops
     60 c2 acquire#2
     62 c2 acquire#2 ok validity=400"

    "a grant to the next life of a client that crashed" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 nemesis inject#3 step=0 fault=crash on=c1 does=restarts
     52 nemesis inject#3 ok step=0 fault=crash on=c1 does=restarts
     54 c1.2 acquire#4
     56 c1.2 acquire#4 ok validity=350
     60 c2 acquire#2
     62 c2 acquire#2 ok validity=400"

    "a grant without expiry" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok
     9000 c2 acquire#2
     9002 c2 acquire#2 ok"

    "a grant without expiry, and a server that was killed" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok
     50 nemesis inject#3 step=0 fault=crash on=s1 does=kills
     52 nemesis inject#3 ok step=0 fault=crash on=s1 does=kills
     60 c2 acquire#2
     62 c2 acquire#2 ok
     63 c2 release#4 grant=2
     64 c2 release#4 ok"

    "a grant without expiry, while a server was killed" Holds
    "10 c2 acquire#4
     12 c2 acquire#4 ok
     14 c2 release#5 grant=4
     15 c2 release#5 ok
     43 c1 acquire#1
     50 nemesis inject#3 step=0 fault=crash on=s1 does=restarts
     51 c1 acquire#1 ok
     52 nemesis inject#3 ok step=0 fault=crash on=s1 does=restarts
     60 c2 acquire#2
     62 c2 acquire#2 ok
     63 c2 release#6 grant=2
     64 c2 release#6 ok"

    "a grant without expiry, asked for before a server was killed and answered after" Holds
    "10 c2 acquire#4
     12 c2 acquire#4 ok
     14 c2 release#5 grant=4
     15 c2 release#5 ok
     43 c1 acquire#1
     50 nemesis inject#3 step=0 fault=crash on=s1 does=restarts
     52 nemesis inject#3 ok step=0 fault=crash on=s1 does=restarts
     53 c1 acquire#1 ok
     60 c2 acquire#2
     62 c2 acquire#2 ok
     63 c2 release#6 grant=2
     64 c2 release#6 ok"

    "a grant without expiry, asked for after a server was killed" Violated
    "50 nemesis inject#3 step=0 fault=crash on=s1 does=restarts
     52 nemesis inject#3 ok step=0 fault=crash on=s1 does=restarts
     53 c1 acquire#1
     54 c1 acquire#1 ok
     60 c2 acquire#2
     62 c2 acquire#2 ok
     63 c2 release#6 grant=2
     64 c2 release#6 ok"

    "a lease, and a server that was killed" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     50 nemesis inject#3 step=0 fault=crash on=s1 does=kills
     52 nemesis inject#3 ok step=0 fault=crash on=s1 does=kills
     60 c2 acquire#2
     62 c2 acquire#2 ok validity=400"

    "a renewal" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     90 c1 renewed#3 info grant=1 validity=200
     110 c2 acquire#2
     112 c2 acquire#2 ok validity=400"

    "a renewal, and a grant after it" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     90 c1 renewed#3 info grant=1 validity=200
     190 c2 acquire#2
     200 c2 acquire#2 ok validity=400"

    "a renewal that shortens" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     90 c1 renewed#3 info grant=1 validity=200
     190 c2 acquire#2
     200 c2 acquire#2 ok validity=400"

    "a renewal after the validity, when another had the lock before" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     110 c2 acquire#2
     112 c2 acquire#2 ok validity=150
     160 c1 renewed#3 info grant=1 validity=260"

    "a renewal after the validity, when another has the lock" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     110 c2 acquire#2
     112 c2 acquire#2 ok validity=250
     160 c1 renewed#3 info grant=1 validity=260"

    "a renewal after the validity, and another after it" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     110 c2 acquire#2
     112 c2 acquire#2 ok validity=150
     160 c1 renewed#3 info grant=1 validity=260
     170 c3 acquire#4
     172 c3 acquire#4 ok validity=300"

    "a renewal at the end of another's hold" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     110 c2 acquire#2
     112 c2 acquire#2 ok validity=160
     160 c1 renewed#3 info grant=1 validity=260"

    "a renewal of a grant that was given back" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     20 c1 release#2 grant=1
     22 c1 release#2 ok
     25 c1 renewed#3 info grant=1 validity=260
     30 c2 acquire#4
     32 c2 acquire#4 ok validity=300"

    "two grants of one client" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     20 c1 acquire#2
     22 c1 acquire#2 ok validity=200"

    "two grants of one client, one after the other" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     110 c1 acquire#2
     112 c1 acquire#2 ok validity=200
     150 c2 acquire#3
     151 c2 acquire#3 fail error=busy"

    "a client's own second grant, and an extension of the first" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     110 c1 acquire#2
     112 c1 acquire#2 ok validity=200
     120 c1 extend#3 grant=1 ttl_ms=100
     122 c1 extend#3 ok validity=220"

    "the release of a former grant ends no later one" Violated
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     110 c1 acquire#2
     112 c1 acquire#2 ok validity=300
     120 c1 release#3 grant=1
     122 c1 release#3 ok
     130 c2 acquire#4
     132 c2 acquire#4 ok validity=400"

    "an acquire of unknown outcome proves no hold" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 info
     20 c2 acquire#2
     22 c2 acquire#2 ok validity=200
     30 c1 release#3 grant=1
     32 c1 release#3 ok"

    "an acquire of unknown outcome between a grant and its release" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=300
     14 c1 acquire#2
     16 c1 acquire#2 info
     20 c1 release#3 grant=1
     22 c1 release#3 ok
     30 c2 acquire#4
     32 c2 acquire#4 ok validity=400"

    "three clients, one after the other" Holds
    "10 c1 acquire#1
     11 c2 acquire#2
     12 c3 acquire#3
     20 c1 acquire#1 ok validity=300
     30 c1 release#4 grant=1
     32 c2 acquire#2 ok validity=300
     40 c1 release#4 ok
     50 c2 release#5 grant=2
     51 c2 release#5 fail lost=true error=gone
     60 c3 acquire#3 ok validity=300"

    "three clients, of which two are still holders" Violated
    "10 c1 acquire#1
     11 c2 acquire#2
     12 c3 acquire#3
     20 c1 acquire#1 ok validity=50
     60 c2 acquire#2 ok validity=300
     62 c3 acquire#3 ok validity=300"

    "two locks" Holds
    "10 c1 acquire#1
     12 c1 acquire#1 ok validity=100
     14 c1 acquire#2 lock=m
     16 c1 acquire#2 ok lock=m validity=300
     110 c2 acquire#3
     112 c2 acquire#3 ok validity=400"
};
