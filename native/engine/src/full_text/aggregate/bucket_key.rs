//! The keys of buckets.

/// A bucket's key, the same in every segment and range. The order is that of equally frequent buckets in an answer.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum BucketKey {
    /// Bits that order as the doubles do.
    Number(u64),
    /// Nanoseconds since 1970.
    Date(i64),
    Text(Box<str>),
    Boolean(bool),
    /// The position of a range, or the number of an interval.
    Numbered(i64),
    /// Bits of a geohash.
    Cell(u64),
    Tuple(Box<[BucketKey]>),
}
