//! Vectors as codes of eight bits: each with a scale of its own, so that vectors of any length keep their direction.

use super::super::metric::Metric;

/// A vector that is compared with the nodes of a graph.
///
/// The cost of a node is `base + slope * norm - factor * scale * dot`, where `norm` and `scale` are the node's and `dot`
/// is the product of the codes.
#[derive(Debug, Clone, Default)]
pub struct CodedQuery {
    pub codes: Vec<i8>,
    pub base: f32,
    pub slope: f32,
    pub factor: f32,
}

/// Writes the codes of `vector`; gives its scale and the sum of the codes.
///
/// The scale is the one for which what rounding has added is at right angles to the vector, so that the product with a
/// vector close to it is nearly exact. With the step of the rounding as scale, a vector would seem a thousandth longer or
/// shorter than it is, which is more than what tells the neighbours in a narrow cluster apart by their angles.
pub fn encode(vector: &[f32], codes: &mut [i8]) -> (f32, i32) {
    let largest = vector.iter().fold(0.0f32, |largest, value| largest.max(value.abs()));
    let inverse = if largest > 0.0 { 127.0 / largest } else { 0.0 };
    let (mut sum, mut squared_norm, mut product) = (0, 0.0, 0.0);
    for (code, &value) in codes.iter_mut().zip(vector) {
        *code = (value * inverse).round_ties_even() as i8;
        sum += i32::from(*code);
        // In doubles, because the squares of very large or very small values leave the range of floats.
        squared_norm += f64::from(value) * f64::from(value);
        product += f64::from(value) * f64::from(*code);
    }
    let scale = if product > 0.0 { squared_norm / product } else { 0.0 };
    (scale as f32, sum)
}

/// Squared length of what the codes stand for.
pub fn squared_norm(codes: &[i8], scale: f32) -> f32 {
    let sum: i64 = codes.iter().map(|&code| i64::from(i32::from(code) * i32::from(code))).sum();
    sum as f32 * scale * scale
}

/// The number that the node of a vector of this squared norm keeps, by metric.
///
/// For `inner_product` it is the coordinate that lengthens every vector to the longest: with it, the nearest by angle is
/// the one with the greatest product, and the graph is one of a real metric (Bachrach et al., "Speeding up the Xbox
/// recommender system using a Euclidean transformation for inner-product spaces", 2014).
pub fn node_norm(metric: Metric, squared_norm: f32, longest: f32) -> f32 {
    match metric {
        Metric::L2Squared => squared_norm,
        Metric::Cosine => 0.0,
        Metric::InnerProduct => (longest * longest - squared_norm).max(0.0).sqrt(),
    }
}

impl CodedQuery {
    /// A query from outside; it has no lengthening coordinate.
    pub fn new(metric: Metric, vector: &[f32]) -> Self {
        let mut codes = vec![0; vector.len()];
        let (scale, _) = encode(vector, &mut codes);
        let norm = if metric == Metric::L2Squared { squared_norm(&codes, scale) } else { 0.0 };
        let mut query = Self { codes, ..Self::default() };
        query.weigh(metric, scale, norm);
        query
    }

    /// Takes scale and norm of a node whose codes are in place.
    pub fn weigh(&mut self, metric: Metric, scale: f32, norm: f32) {
        (self.base, self.slope, self.factor) = weights(metric, scale, norm);
    }
}

/// `base`, `slope` and `factor` of a vector of this scale and norm.
#[inline]
pub fn weights(metric: Metric, scale: f32, norm: f32) -> (f32, f32, f32) {
    match metric {
        Metric::L2Squared => (norm, 1.0, 2.0 * scale),
        Metric::Cosine => (1.0, 0.0, scale),
        Metric::InnerProduct => (0.0, -norm, scale),
    }
}
