//! One program for all, so that the index is linked once.

mod algorithms;
mod graph_index;
mod pages;
mod paths;
