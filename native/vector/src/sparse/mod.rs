//! Sparse vectors.
