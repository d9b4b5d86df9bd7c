//! Conditions on points and shapes on earth.

pub mod geo_query;
