//! Named analyzers: text to tokens.

mod analyzer;
mod html;
mod shingles;
mod stems;
mod token_spacing;
mod words;

pub use analyzer::{Analyzer, lone_character};
pub use html::strip_html;
pub use stems::{StemLanguage, Stems};
pub use token_spacing::{GAP_BETWEEN_TEXTS, SLOP_MAX, TokenSpacing};
