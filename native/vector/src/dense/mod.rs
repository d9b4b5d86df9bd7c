//! Dense vectors.
