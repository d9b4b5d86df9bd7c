//! Postings of a term with fewer documents than a block has, read from their bytes.
//!
//! They are the differences of the documents, seven bits a byte, the lowest first; the last byte of each has its highest bit set.
//! Frequencies follow. Tantivy's reader decodes them into a block, which takes longer than what is done with them.

use tantivy::DocId;

/// Bits of a byte that are of the number.
const BITS: u32 = 7;

/// Marks the last byte of a number.
const LAST: u8 = 1 << BITS;

/// Sets a bit for each of the `count` documents that `postings` begin with; `None` where they end before, or name a document that
/// `bits` have no room for.
pub fn add_short(postings: &[u8], count: u32, bits: &mut [u64]) -> Option<()> {
    let mut document: DocId = 0;
    let mut bytes = postings.iter();
    for _ in 0..count {
        let first = *bytes.next()?;
        let mut gap = u32::from(first & !LAST);
        if first & LAST == 0 {
            let second = *bytes.next()?;
            gap |= u32::from(second & !LAST) << BITS;
            if second & LAST == 0 {
                gap |= longer(&mut bytes)?;
            }
        }
        document = document.wrapping_add(gap);
        *bits.get_mut(document as usize / 64)? |= 1 << (document % 64);
    }
    Some(())
}

/// What is behind the first two bytes of a number.
#[inline(never)]
fn longer<'a>(bytes: &mut impl Iterator<Item = &'a u8>) -> Option<u32> {
    let mut number = 0;
    let mut shift = 2 * BITS;
    loop {
        let byte = *bytes.next()?;
        number |= u32::from(byte & !LAST).checked_shl(shift)?;
        if byte & LAST != 0 {
            return Some(number);
        }
        shift += BITS;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn bytes_of(documents: &[DocId]) -> Vec<u8> {
        let (mut bytes, mut last) = (Vec::new(), 0);
        for document in documents {
            let mut gap = document - last;
            last = *document;
            while gap > u32::from(!LAST) {
                bytes.push(gap as u8 & !LAST);
                gap >>= BITS;
            }
            bytes.push(gap as u8 | LAST);
        }
        bytes
    }

    #[test]
    fn gaps_of_any_length_are_read() {
        let documents = [0, 1, 127, 255, 256, 20_000, 2_200_000, 2_200_001, 300_000_000];
        let mut postings = bytes_of(&documents);
        // Frequencies are not looked at.
        postings.extend([LAST | 1; 9]);
        for count in 0..=documents.len() {
            let mut bits = vec![0; documents.last().map_or(0, |last| *last as usize / 64 + 1)];
            assert_eq!(add_short(&postings, count as u32, &mut bits), Some(()));
            let set = sundew_base::bit_set::BitSet::from_words(bits);
            assert_eq!(set.iter().collect::<Vec<_>>(), documents[..count]);
        }
    }

    #[test]
    fn postings_that_end_early_or_name_no_document_are_refused() {
        let postings = bytes_of(&[5, 90_000, 90_001]);
        let mut bits = vec![0; 2_000];
        for end in 0..postings.len() {
            assert_eq!(add_short(&postings[..end], 3, &mut bits), None);
        }
        assert_eq!(add_short(&postings, 3, &mut bits[..1_000]), None);
        assert_eq!(add_short(&[0; 20], 1, &mut bits), None);
    }
}
