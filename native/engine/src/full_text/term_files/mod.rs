//! Terms, postings and positions of a segment. Segments of fewer documents than a block of postings write their dictionaries
//! themselves: Tantivy's clears a megabyte for each, whatever it holds (decision 44).

mod small_field;
mod term_files_writer;
mod term_infos;
mod term_trie;

#[cfg(test)]
pub use term_files_writer::BLOCK_DOCS;
pub use term_files_writer::{FieldWriter, TermFilesWriter};
