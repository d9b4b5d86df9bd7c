//! Bytes that are read as slices of numbers: of a file that is mapped, or of the same file before it is written.

use memmap2::Mmap;

/// A number that any bytes are a value of.
///
/// # Safety
/// Every bit pattern must be a value, there must be no padding, and the alignment must be at most eight.
pub unsafe trait PlainNumber: Copy {}

// SAFETY: each is a number of at most eight bytes without invalid values.
unsafe impl PlainNumber for u8 {}
// SAFETY: as above.
unsafe impl PlainNumber for i8 {}
// SAFETY: as above.
unsafe impl PlainNumber for u16 {}
// SAFETY: as above.
unsafe impl PlainNumber for u32 {}
// SAFETY: as above.
unsafe impl PlainNumber for u64 {}
// SAFETY: as above.
unsafe impl PlainNumber for f32 {}

// Numbers lie in files as they lie in memory.
const _: () = assert!(cfg!(target_endian = "little"), "index files are little-endian");

/// Bytes that begin at a multiple of eight.
pub enum PlainBytes {
    InMemory { words: Box<[u64]>, length: usize },
    Mapped(Mmap),
}

impl PlainBytes {
    /// A copy of `parts`, one after another, each padded with zeros to a multiple of eight.
    pub fn copied(parts: &[&[u8]]) -> Self {
        let length = parts.iter().map(|part| part.len().next_multiple_of(8)).sum();
        let mut words = Vec::with_capacity(length / 8);
        for part in parts {
            let (whole, rest) = part.as_chunks::<8>();
            words.extend(whole.iter().map(|word| u64::from_le_bytes(*word)));
            if !rest.is_empty() {
                let mut last = [0; 8];
                last[..rest.len()].copy_from_slice(rest);
                words.push(u64::from_le_bytes(last));
            }
        }
        Self::InMemory { words: words.into_boxed_slice(), length }
    }

    #[inline]
    pub fn bytes(&self) -> &[u8] {
        match self {
            Self::InMemory { words, length } => &bytes_of(words)[..*length],
            Self::Mapped(map) => map,
        }
    }

    #[inline]
    pub fn is_in_memory(&self) -> bool {
        matches!(self, Self::InMemory { .. })
    }

    /// `count` numbers from byte `offset` on; `None` when they do not all lie inside or `offset` is not aligned.
    pub fn numbers<T: PlainNumber>(&self, offset: usize, count: usize) -> Option<&[T]> {
        let length = count.checked_mul(size_of::<T>())?;
        let bytes = self.bytes().get(offset..offset.checked_add(length)?)?;
        if !bytes.as_ptr().cast::<T>().is_aligned() {
            return None;
        }
        // SAFETY: the bytes are there, aligned, borrowed as long as `self`, and any bytes are a `T`.
        Some(unsafe { std::slice::from_raw_parts(bytes.as_ptr().cast(), count) })
    }
}

/// The numbers as they lie in a file.
pub fn bytes_of<T: PlainNumber>(numbers: &[T]) -> &[u8] {
    // SAFETY: a plain number has no padding, so each of its bytes is initialised.
    unsafe { std::slice::from_raw_parts(numbers.as_ptr().cast(), size_of_val(numbers)) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_numbers_where_they_were_written() {
        let bytes = PlainBytes::copied(&[bytes_of(&[1u16, 2, 3]), bytes_of(&[0.5f32]), bytes_of(&[u64::MAX])]);
        assert_eq!(bytes.bytes().len(), 24);
        assert_eq!(bytes.numbers::<u16>(0, 3), Some(&[1, 2, 3][..]));
        assert_eq!(bytes.numbers::<f32>(8, 1), Some(&[0.5][..]));
        assert_eq!(bytes.numbers::<u64>(16, 1), Some(&[u64::MAX][..]));
    }

    #[test]
    fn refuses_numbers_that_are_not_all_there() {
        let bytes = PlainBytes::copied(&[bytes_of(&[1u32, 2])]);
        assert_eq!(bytes.numbers::<u32>(4, 2), None);
        assert_eq!(bytes.numbers::<u32>(2, 1), None, "not aligned");
        assert_eq!(bytes.numbers::<u32>(usize::MAX, 1), None);
        assert_eq!(bytes.numbers::<u32>(0, usize::MAX), None);
    }
}
