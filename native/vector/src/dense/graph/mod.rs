//! A navigable graph over vectors (HNSW; Malkov and Yashunin, "Efficient and robust approximate nearest neighbor search
//! using hierarchical navigable small world graphs", 2016): codes of eight bits a dimension beside the links, so that a
//! step of a walk touches few cache lines. It knows rows by their numbers in the graph.

mod beam;
mod code_kernels;
mod codes;
mod filtered;
mod growth;
mod insert;
mod judging;
mod layout;
mod storage;
mod walk;

pub use beam::Beam;
pub use codes::CodedQuery;
pub use filtered::{FilteredWalk, WalkEnd};
pub use growth::AddedRow;
pub use insert::{Cancelled, Insertion, Way, insert_rows};
pub use judging::judge_links;
pub use storage::{Copied, Graph, prefetch};
pub use walk::Scratch;
