//! One program for all: each would be linked with the whole engine.

mod full_text;
mod fuzz_corpus;
mod fuzz_entries;
mod json_policy;
mod plan_fixture;
mod retrieval;
mod row_filter;
mod table_schema;
mod write;
