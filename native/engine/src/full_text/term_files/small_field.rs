//! A field of a segment without a full block of postings, as Tantivy 0.27 writes it but for the dictionary's nodes.

use std::io::{self, Write};

use tantivy::DocId;
use tantivy::positions::PositionSerializer;
use tantivy::postings::TermInfo;
use tantivy::postings::serializer::PostingsSerializer;
use tantivy::schema::IndexRecordOption;

use super::term_infos::TermInfos;
use super::term_trie::TermTrie;

/// How a dictionary ends: the version of its layout, and the kind whose keys are in a transducer.
const DICTIONARY_END: [u32; 2] = [1, 1];

pub struct SmallField<'a> {
    terms: &'a mut dyn Write,
    postings: &'a mut dyn Write,
    positions: Option<PositionSerializer<&'a mut dyn Write>>,
    trie: TermTrie,
    infos: TermInfos,
    of_term: PostingsSerializer,
    /// The term that is being written.
    info: TermInfo,
    room: Vec<u8>,
}

impl<'a> SmallField<'a> {
    pub fn new(
        record: IndexRecordOption,
        tokens: u64,
        [terms, postings, positions]: [&'a mut dyn Write; 3],
    ) -> io::Result<Self> {
        postings.write_all(&tokens.to_le_bytes())?;
        Ok(Self {
            terms,
            postings,
            positions: record.has_positions().then(|| PositionSerializer::new(positions)),
            trie: TermTrie::new(),
            infos: TermInfos::default(),
            // Lengths count for the best score of a full block, of which there is none.
            of_term: PostingsSerializer::new(0.0, record, None),
            info: TermInfo::default(),
            room: Vec::new(),
        })
    }

    pub fn begin_term(&mut self, term: &[u8], has_frequencies: bool) {
        self.trie.insert(term);
        self.of_term.new_term(0, has_frequencies);
        let TermInfo { postings_range, positions_range, .. } = &self.info;
        let (postings, positions) = (postings_range.end, positions_range.end);
        self.info = TermInfo { doc_freq: 0, postings_range: postings..postings, positions_range: positions..positions };
    }

    pub fn write_document(&mut self, document: DocId, frequency: u32, steps: &[u32]) {
        self.info.doc_freq += 1;
        self.of_term.write_doc(document, frequency);
        if let Some(positions) = &mut self.positions {
            positions.write_positions_delta(steps);
        }
    }

    pub fn end_term(&mut self) -> io::Result<()> {
        self.room.clear();
        self.of_term.close_term(self.info.doc_freq, &mut self.room)?;
        self.postings.write_all(&self.room)?;
        self.info.postings_range.end += self.room.len();
        if let Some(positions) = &mut self.positions {
            positions.close_term()?;
            self.info.positions_range.end = positions.written_bytes() as usize;
        }
        self.infos.push(&self.info)
    }

    pub fn close(self) -> io::Result<()> {
        if let Some(positions) = self.positions {
            positions.close()?;
        }
        let infos = self.infos.finish()?;
        self.terms.write_all(&self.trie.finish())?;
        self.terms.write_all(&infos)?;
        self.terms.write_all(&(infos.len() as u64).to_le_bytes())?;
        DICTIONARY_END.iter().try_for_each(|part| self.terms.write_all(&part.to_le_bytes()))
    }
}
