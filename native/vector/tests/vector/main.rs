//! One program for all, so that the indexes are linked once.

mod dense;
mod sparse;
