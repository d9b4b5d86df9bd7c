//! Indexes of sparse vectors.

mod durability;
mod random;
mod sets;
mod support;
