//! What version 1 of the format left unsaid: what its faults did, what their evidence had to say, and that the policy
//! `fenced` sends tokens. Its faults were these six, and a history of version 1 means them by their names for ever.

use serde_json::Value;

use crate::{Deed, Effect, Expectation, Header, PlannedFault, Shows};

/// The policy of version 1 under which writes carry the token of their grant.
const FENCED: &str = "fenced";

/// One fault of version 1: its name, what it did, and what its evidence had to say.
type Declared = (
    &'static str,
    fn(&PlannedFault) -> Effect,
    fn(&PlannedFault) -> (&'static str, Expectation),
);

const FAULTS: [Declared; 6] = [
    (
        "pause",
        |_| Effect::of(Deed::Stops),
        |_| ("states", Expectation::only('T')),
    ),
    (
        "crash",
        |_| Effect::of(Deed::Kills),
        |_| ("ended", Expectation::there()),
    ),
    (
        "restart",
        |_| Effect::of(Deed::Restarts),
        |_| ("pid", Expectation::differs_from("pid_before")),
    ),
    ("clock-step", clock_step, |fault| {
        let step_ms = number(fault, "step_ms");
        let near = Expectation::near(step_ms, step_ms.abs() / 2.0);
        ("measured_step_ms", near)
    }),
    (
        "delay",
        |fault| Effect {
            effect: Deed::DelaysPackets,
            to: fault
                .with
                .get("to")
                .and_then(Value::as_str)
                .map(str::to_owned),
            each_ms: fault.with.get("delay_ms").and_then(Value::as_u64),
        },
        |_| ("packets", Expectation::at_least(1.0)),
    ),
    (
        "long-work",
        |_| Effect::of(Deed::HoldsWork),
        |_| ("completed_meanwhile", Expectation::equals(0)),
    ),
];

fn clock_step(fault: &PlannedFault) -> Effect {
    Effect::of(if number(fault, "step_ms") < 0.0 {
        Deed::ClockBack
    } else {
        Deed::ClockForward
    })
}

fn number(fault: &PlannedFault, name: &str) -> f64 {
    let number = fault.with.get(name).and_then(Value::as_f64);
    number.unwrap_or_default()
}

/// Writes into a header of version 1 what later versions say in it.
pub(crate) fn complete(header: &mut Header) {
    let is_fenced = header.plan.policy == FENCED;
    header.plan.write_condition = is_fenced.then(|| "token".to_owned());
    for fault in &mut header.plan.faults {
        let declared = FAULTS.iter().find(|(name, ..)| *name == fault.fault);
        let (does, shows) = match declared {
            Some((_, does, shows)) => {
                let (field, expectation) = shows(fault);
                let shows = Shows::from([(field.to_owned(), expectation)]);
                (does(fault), shows)
            }
            None => (Effect::of(Deed::Unforeseen), Shows::new()),
        };
        (fault.does, fault.shows) = (vec![does], shows);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Reader;

    #[test]
    fn a_pause_of_version_1_stops_its_client_and_shows_it() {
        let saved = include_str!("../corpus/v1/paused-client.jsonl");
        let header = Reader::new(saved.as_bytes()).unwrap().header().clone();
        let [pause] = header.plan.faults.as_slice() else {
            panic!("one fault: {:?}", header.plan.faults)
        };
        assert_eq!(pause.does, [Effect::of(Deed::Stops)]);
        assert_eq!(pause.shows["states"], Expectation::only('T'));
        assert_eq!(header.plan.write_condition, None, "its policy is unfenced");
        assert!(header.contract.is_empty());
    }

    #[test]
    fn the_sign_of_a_step_tells_its_direction_and_an_unknown_fault_is_unforeseen() {
        let saved = include_str!("../corpus/v1/paused-client.jsonl");
        let mut header = Reader::new(saved.as_bytes()).unwrap().header().clone();
        let mut fault = |name: &str, step_ms: i64| {
            let planned = &mut header.plan.faults[0];
            planned.fault = name.to_owned();
            planned.with.insert("step_ms".to_owned(), step_ms.into());
            complete(&mut header);
            header.plan.faults[0].does[0].effect
        };
        assert_eq!(fault("clock-step", -30), Deed::ClockBack);
        assert_eq!(fault("clock-step", 30), Deed::ClockForward);
        assert_eq!(fault("earthquake", 30), Deed::Unforeseen);
    }
}
