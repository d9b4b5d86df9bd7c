//! Grammars that outputs are held to: see `native/grammar`. All calls are short or bounded, and run on the calling
//! thread.

use std::sync::{Arc, Mutex, PoisonError};

use napi::Env;
use napi::bindgen_prelude::{Uint8Array, Uint32Array};
use napi_derive::napi;
use sundew_engine::error::EngineError;
use sundew_grammar::{Matcher, Vocabulary, VocabularyParts};

use crate::guard::call;
use crate::owned_array::OwnedArray;
use crate::registry::Registry;

static VOCABULARIES: Registry<Arc<Vocabulary>> = Registry::new("vocabulary");
static MATCHERS: Registry<Arc<Mutex<Matcher>>> = Registry::new("grammar");

/// Opens the vocabulary of a model: bytes of all tokens, one after another, and how many each of them has. `control` are
/// tokens whose text counts only where a grammar is opened with them.
#[napi]
pub fn open_vocabulary(
    env: Env,
    bytes: Uint8Array,
    lengths: Uint32Array,
    ends: Vec<u32>,
    control: Vec<u32>,
) -> napi::Result<u32> {
    call(&env, || {
        let parts = VocabularyParts { bytes: &bytes, lengths: &lengths, ends, control };
        Ok(VOCABULARIES.insert(Vocabulary::new(parts)?))
    })
}

/// Opens a GBNF grammar for one output. `shown` are control tokens that count as their text.
/// Throws `unsupported_response_format`.
#[napi]
pub fn open_grammar(env: Env, vocabulary: u32, gbnf: String, shown: Vec<u32>) -> napi::Result<u32> {
    call(&env, || {
        let matcher = Matcher::new(VOCABULARIES.get(vocabulary)?, &gbnf, shown)?;
        Ok(MATCHERS.insert(Arc::new(Mutex::new(matcher))))
    })
}

/// Whether the token may come next. Throws `unsupported_response_format` where the grammar is too ambiguous.
#[napi]
pub fn grammar_accepts(env: Env, grammar: u32, token: u32) -> napi::Result<bool> {
    with(&env, grammar, |matcher| matcher.accepts(token))
}

/// Goes on behind a token that is accepted. Throws as `grammarAccepts`.
#[napi]
pub fn grammar_commit(env: Env, grammar: u32, token: u32) -> napi::Result<()> {
    with(&env, grammar, |matcher| matcher.commit(token))
}

/// Goes on behind a text; false where the grammar does not allow it. Throws as `grammarAccepts`.
#[napi]
pub fn grammar_commit_text(env: Env, grammar: u32, text: String) -> napi::Result<bool> {
    with(&env, grammar, |matcher| matcher.commit_text(&text))
}

/// All tokens that may not come next, ascending. Throws as `grammarAccepts`.
#[napi(ts_return_type = "Uint32Array")]
pub fn grammar_refused(env: Env, grammar: u32) -> napi::Result<OwnedArray<u32>> {
    with(&env, grammar, |matcher| matcher.refused().map(OwnedArray))
}

#[napi]
pub fn close_grammar(env: Env, grammar: u32) -> napi::Result<()> {
    call(&env, || MATCHERS.remove(grammar).map(|_| ()))
}

fn with<T>(env: &Env, grammar: u32, work: impl FnOnce(&mut Matcher) -> Result<T, EngineError>) -> napi::Result<T> {
    call(env, || {
        let matcher = MATCHERS.get(grammar)?;
        // A state that a panic left half-way belongs to one request, which has failed by it.
        work(&mut matcher.lock().unwrap_or_else(PoisonError::into_inner))
    })
}
