//! The links of an index's graphs, on their way into another index of the same documents.

mod link_file;
mod linked_again;
mod linking;
mod written_links;

pub use linked_again::LinkReport;
