//! Stored vectors as JSON.

use serde::Serialize;
use sundew_base::part::dense_set::DenseSet;
use sundew_base::part::{PartBody, PartForm, dense, sparse, sparse_set};

use crate::error::EngineError;

/// The JSON text of a stored vector: an array of numbers, or `{"indices":[..],"values":[..]}`; of several vectors an
/// array of them. Every number is the shortest that stands for its float32. Error: `internal` for bytes that are not a
/// vector.
pub fn render_vector(body: &[u8]) -> Result<String, EngineError> {
    let body = PartBody::parse(body)?;
    match body.form {
        PartForm::Deleted => Ok("null".to_owned()),
        PartForm::Dense => as_json(&dense::values(body.payload)?.collect::<Vec<_>>()),
        PartForm::DenseSet => {
            let set = DenseSet::parse(body.payload)?;
            let vectors: Vec<Vec<f32>> = (0..set.count()).map(|at| set.vector(at).collect()).collect();
            as_json(&vectors)
        }
        PartForm::Sparse => render_sparse(body.payload),
        PartForm::SparseSet => {
            let vectors: Vec<String> =
                sparse_set::vectors(body.payload)?.into_iter().map(render_sparse).collect::<Result<_, _>>()?;
            Ok(format!("[{}]", vectors.join(",")))
        }
        PartForm::Edges | PartForm::ChunkSet | PartForm::Asset => {
            Err(EngineError::internal("a part that is not a vector"))
        }
    }
}

fn render_sparse(payload: &[u8]) -> Result<String, EngineError> {
    let (indices, values): (Vec<u32>, Vec<f32>) = sparse::entries(payload)?.unzip();
    Ok(format!("{{\"indices\":{},\"values\":{}}}", as_json(&indices)?, as_json(&values)?))
}

fn as_json<T: Serialize>(numbers: &[T]) -> Result<String, EngineError> {
    serde_json::to_string(numbers)
        .map_err(|error| EngineError::internal(format!("a vector that cannot be written as JSON: {error}")))
}
