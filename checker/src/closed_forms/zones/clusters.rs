//! Which call found what which other call wrote.

use super::{Access, Accessed};
use crate::linearizability::History;
use crate::models::Datum;
use crate::names::{Map, NONE};

/// Stands for the cluster of a value that nothing wrote.
pub(super) const UNWRITTEN: u32 = NONE - 1;

/// Stands for the cluster of a value that was written more than once.
const SEVERAL: u32 = NONE - 2;

/// The number of the initial value's cluster.
pub(super) const INITIAL: u32 = 0;

/// A value's stay in the register: the call that wrote it, and those that found it.
pub(super) struct Cluster {
    /// The call that wrote it, or [`NONE`] for the initial value.
    pub(super) writer: u32,
    /// The cluster of the value that the writer found: of a cas; [`NONE`] if it wrote on no condition.
    pub(super) parent: u32,
}

/// The calls of a history, by what they wrote and found.
pub(super) struct Clusters {
    pub(super) clusters: Vec<Cluster>,
    /// By call: the cluster that it wrote or, for a read, found.
    pub(super) of: Vec<u32>,
    /// Whether a cas is among the calls.
    pub(super) linked: bool,
}

/// What is known of a value.
#[derive(Clone, Copy)]
struct Known {
    /// The cluster, [`UNWRITTEN`] or [`SEVERAL`].
    cluster: u32,
    /// Whether a call found it.
    found: bool,
}

const UNKNOWN: Known = Known {
    cluster: UNWRITTEN,
    found: false,
};

/// By value: what is known of it.
enum Table {
    /// As most models number them: from 0 on.
    Dense(Vec<Known>),
    Sparse(Map<Datum, Known>),
}

impl Table {
    fn new(greatest: Datum, calls: usize) -> Table {
        let length = greatest as usize + 1;
        if length <= 4 * calls + 64 {
            Table::Dense(vec![UNKNOWN; length])
        } else {
            Table::Sparse(Map::default())
        }
    }

    fn of(&mut self, value: Datum) -> &mut Known {
        match self {
            Table::Dense(row) => &mut row[value as usize],
            Table::Sparse(map) => map.entry(value).or_insert(UNKNOWN),
        }
    }

    /// Notes that a call wrote a value; whether it is still plain what the calls that found it found.
    fn write(&mut self, value: Datum, cluster: u32) -> bool {
        let known = self.of(value);
        known.cluster = if known.cluster == UNWRITTEN {
            cluster
        } else {
            SEVERAL
        };
        known.cluster != SEVERAL || !known.found
    }

    /// Notes that a call found a value; whether it is plain what wrote it.
    fn find(&mut self, value: Datum) -> bool {
        let known = self.of(value);
        known.found = true;
        known.cluster != SEVERAL
    }
}

/// What a call does, if it matters: of one that need not have happened only what it may have written.
fn accesses<'h, M: Accessed>(
    model: &'h M,
    history: &'h History<M::Operation>,
) -> impl Iterator<Item = Option<Access>> + 'h {
    history.calls().iter().map(|call| {
        let access = Some(model.access(&call.operation));
        access.filter(|access| call.certain || !matches!(access, Access::Read(_) | Access::Other))
    })
}

impl Clusters {
    /// `None` if a value was found that was written more than once, or if a call is more than a register's.
    pub(super) fn of<M: Accessed>(model: &M, history: &History<M::Operation>) -> Option<Clusters> {
        let greatest = accesses(model, history)
            .flatten()
            .map(Access::greatest)
            .max();
        let initial = model.initial();
        let mut table = Table::new(greatest.unwrap_or(0).max(initial), history.len());
        table.write(initial, INITIAL);
        let mut number = INITIAL;
        let mut linked = false;
        for access in accesses(model, history).flatten() {
            let plain = match access {
                Access::Read(value) => table.find(value),
                Access::Write(value) => {
                    number += 1;
                    table.write(value, number)
                }
                Access::Cas { expected, new } => {
                    number += 1;
                    linked = true;
                    table.write(new, number) && table.find(expected)
                }
                Access::Other => false,
            };
            if !plain {
                return None;
            }
        }
        Some(Clusters::gather(model, history, table, linked))
    }

    fn gather<M: Accessed>(
        model: &M,
        history: &History<M::Operation>,
        mut table: Table,
        linked: bool,
    ) -> Clusters {
        let mut clusters = vec![Cluster {
            writer: NONE,
            parent: NONE,
        }];
        let of = (0..)
            .zip(accesses(model, history))
            .map(|(writer, access)| {
                let parent = match access {
                    None | Some(Access::Other) => return NONE,
                    Some(Access::Read(value)) => return table.of(value).cluster,
                    Some(Access::Write(_)) => NONE,
                    Some(Access::Cas { expected, .. }) => table.of(expected).cluster,
                };
                clusters.push(Cluster { writer, parent });
                clusters.len() as u32 - 1
            })
            .collect();
        Clusters {
            clusters,
            of,
            linked,
        }
    }

    pub(super) fn parent(&self, cluster: u32) -> u32 {
        self.clusters[cluster as usize].parent
    }

    pub(super) fn writer(&self, cluster: u32) -> u32 {
        self.clusters[cluster as usize].writer
    }
}
