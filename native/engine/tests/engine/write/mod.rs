//! Writes as they are read and put into frames.

mod random;
mod scan;
mod vectors;
