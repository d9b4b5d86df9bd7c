//! The metrics: vectors in the form that each compares, and what comes out of a comparison.

use serde::{Deserialize, Serialize};

use super::float_kernels::{dot, squared_distance};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Metric {
    L2Squared,
    Cosine,
    InnerProduct,
}

impl Metric {
    /// The vector as it is kept and compared: of length one for `cosine`, as it is otherwise. The error says what is
    /// wrong with it.
    pub fn prepare(self, vector: &mut [f32]) -> Result<(), String> {
        if let Some(value) = vector.iter().find(|value| !value.is_finite()) {
            return Err(format!("the vector holds {value}; give finite numbers"));
        }
        if self != Self::Cosine {
            return Ok(());
        }
        // In doubles, so that neither tiny nor huge vectors lose their direction.
        let norm = vector.iter().map(|&value| f64::from(value) * f64::from(value)).sum::<f64>().sqrt();
        if norm == 0.0 {
            return Err("the vector is all zeros and has no direction; cosine cannot compare it".to_owned());
        }
        for value in vector.iter_mut() {
            *value = (f64::from(*value) / norm) as f32;
        }
        Ok(())
    }

    /// Smaller is nearer, for every metric. Both vectors are prepared.
    pub fn cost(self, a: &[f32], b: &[f32]) -> f32 {
        match self {
            Self::L2Squared => squared_distance(a, b),
            Self::Cosine => 1.0 - dot(a, b),
            // Not -0.
            Self::InnerProduct => 0.0 - dot(a, b),
        }
    }

    /// The distance as callers know it; smaller is nearer.
    pub fn distance(self, cost: f32) -> f32 {
        match self {
            Self::L2Squared | Self::InnerProduct => cost,
            // Rounding must not make a vector nearer than itself.
            Self::Cosine => cost.max(0.0),
        }
    }

    /// The least cost of a row whose distance to a row of this cost is at most `apart`. `length` is that of the query.
    pub fn least_cost(self, cost: f32, apart: f32, length: f32) -> f32 {
        match self {
            Self::L2Squared => (cost.sqrt() - apart).max(0.0).powi(2),
            Self::Cosine | Self::InnerProduct => cost - length * apart,
        }
    }

    pub fn score(self, distance: f32) -> f32 {
        match self {
            Self::L2Squared => 1.0 / (1.0 + distance),
            Self::Cosine => 1.0 - distance,
            Self::InnerProduct => 0.0 - distance,
        }
    }
}
