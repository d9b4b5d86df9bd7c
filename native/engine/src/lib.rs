//! Sundew's engine: JSON scanning, document frames, schema validation and full-text indexes. No JavaScript in here;
//! `native/binding` is the N-API surface.

pub mod error;
pub mod frame;
