//! The hazards that faults are.

use histories::{Deed, Effect, Hazard, Plan, Role};

use super::{Disturbance, Window, disturbance, window};
use crate::contract::{hazards_of, keeps_from_asking, undone_by};
use crate::faults::InForce;
use crate::operations::NEVER;

/// The clients' hosts that a fault disturbs.
pub(super) fn disturbances(fault: &InForce<'_>, plan: &Plan) -> Vec<Disturbance> {
    if !fault
        .does
        .iter()
        .any(|effect| keeps_from_asking(effect, plan))
    {
        return Vec::new();
    }
    let clients = fault
        .roles()
        .filter(|(_, role)| *role == Some(Role::Client));
    clients
        .map(|(host, _)| disturbance(host, fault.from, fault.until))
        .collect()
}

/// The windows of one fault.
pub(super) fn windows(fault: &InForce<'_>) -> Vec<Window> {
    let mut windows = Vec::new();
    for ((host, role), acts_again) in fault.roles().zip(&fault.acts_again) {
        for effect in &fault.does {
            let own = Some(host).filter(|_| role == Some(Role::Client));
            for hazard in hazards_of(effect, role, !fault.stays) {
                let mut window = of_effect(fault, effect, role, hazard, own);
                // Whoever acts is not kept from it any more, whenever the healing is said to be done.
                if matches!(effect.effect, Deed::Stops | Deed::HoldsWork) && fault.is_shown {
                    window.until = window.until.min(acts_again.unwrap_or(NEVER));
                }
                windows.push(window);
            }
            windows.extend(of_healing(fault, effect, role));
            windows.extend(of_start_after_all(fault, effect, role));
        }
    }
    windows
}

fn of_effect(
    fault: &InForce<'_>,
    effect: &Effect,
    role: Option<Role>,
    hazard: Hazard,
    host: Option<&str>,
) -> Window {
    let until = if is_for_good(effect, role) || hazard == Hazard::Unforeseen {
        NEVER
    } else {
        fault.until
    };
    let hinders_until = match effect.effect {
        Deed::ClockBack => NEVER,
        _ => fault.until,
    };
    Window {
        hinders_until,
        is_shown: fault.is_shown,
        ..window(hazard, host, fault.from, until)
    }
}

/// Whether what an effect takes is gone for good: what a server forgot concerns all that it grants afterwards.
pub(super) fn is_for_good(effect: &Effect, role: Option<Role>) -> bool {
    effect.effect == Deed::LosesState || (effect.is_deadly() && role == Some(Role::Server))
}

/// Healing a step of a clock is a step the other way.
fn of_healing(fault: &InForce<'_>, effect: &Effect, role: Option<Role>) -> Vec<Window> {
    let (Some(back), Some(from)) = (undone_by(effect), fault.heals_from) else {
        return Vec::new();
    };
    let hinders_until = match back.effect {
        Deed::ClockBack => NEVER,
        _ => fault.until,
    };
    hazards_of(&back, role, true)
        .into_iter()
        .map(|hazard| Window {
            hinders_until,
            is_shown: fault.is_shown,
            ..window(hazard, None, from, fault.until)
        })
        .collect()
}

/// A server that nothing was to start again is lost until that happens all the same: then it was restarted.
fn of_start_after_all(fault: &InForce<'_>, effect: &Effect, role: Option<Role>) -> Option<Window> {
    let from = fault.heals_from.filter(|_| fault.stays)?;
    let was_lost = hazards_of(effect, role, false).contains(&Hazard::ServerLost);
    was_lost.then(|| Window {
        hinders_until: fault.until,
        is_shown: fault.is_shown,
        ..window(Hazard::ServerRestarted, None, from, NEVER)
    })
}
