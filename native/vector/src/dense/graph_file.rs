//! The file of a graph, and graphs that are made in theirs.

use std::fs::File;
use std::sync::Arc;

use sundew_base::error::{EngineError, io_failed, unreadable};

use super::graph::Graph;
use super::options::DenseOptions;
use super::rows::graph_rows::GraphRows;
use super::rows::row_store::RowStore;
use super::segment_files::{SegmentFile, SegmentFiles, WrittenFile};

pub fn graph_file_name(segment_id: u64) -> String {
    format!("{segment_id}.graph")
}

/// Reads a graph where it lies in its file.
pub fn map_graph(
    written: WrittenFile,
    rows: Arc<RowStore>,
    count: usize,
    options: &DenseOptions,
) -> Result<GraphRows, EngineError> {
    let opened = File::open(written.file.path());
    let file = opened.map_err(|error| unreadable(&written.file.name, &error))?;
    let graph = Graph::map(options.metric, &file, options.dimension as usize, count)?;
    Ok(GraphRows::in_file(graph, written, rows))
}

/// A file in which a graph is made.
pub struct NewGraphFile {
    file: Arc<SegmentFile>,
    /// For reading and writing.
    pub handle: File,
}

impl NewGraphFile {
    pub fn create(files: &SegmentFiles, segment_id: u64) -> Result<Self, EngineError> {
        let file = files.new_file(graph_file_name(segment_id));
        let opened = File::options().read(true).write(true).create(true).truncate(true).open(file.path());
        Ok(Self { file, handle: opened.map_err(io_failed("create a graph file"))? })
    }

    /// The rows of the graph, which was made here and sealed, as they are read from the file. A checkpoint finds it written.
    pub fn keep(self, graph: Graph, rows: RowStore, options: &DenseOptions) -> Result<GraphRows, EngineError> {
        let (count, bytes) = (graph.layout.rows, graph.bytes().len() as u64);
        let crc = crc32fast::hash(graph.bytes());
        drop(graph);
        // There was room for every row to become a copy.
        self.handle.set_len(bytes).map_err(io_failed("cut a graph file"))?;
        map_graph(WrittenFile { file: self.file, bytes, crc, grows: false }, Arc::new(rows), count, options)
    }
}
