//! The vectors of documents, in the member `_embeddings`: as requests send them, as rows, and as JSON.

mod vector_reader;
mod vector_rows;
mod vector_text;

pub use vector_reader::SPARSE_ENTRIES_MAX;
pub(super) use vector_rows::VectorRows;
pub use vector_rows::{SQUARES_MAX, VectorTarget, VectorsTaken};
pub use vector_text::render_vector;
