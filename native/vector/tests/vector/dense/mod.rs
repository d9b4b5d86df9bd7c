//! Indexes of dense vectors.

mod alike;
mod contract;
mod crash;
mod effort;
mod graph;
mod links;
mod sets;
mod support;
mod waiting;
