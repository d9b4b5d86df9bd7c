//! Files of links, by which a graph is made again somewhere else (integers are little-endian, varints LEB128):
//!
//! ```text
//! head      0 magic u32, 4 nodes u32
//! ordinals  for each node a varint: by how much its ordinal exceeds that of the node before it
//! numbers   for each node a varint: its number among the vectors of its document
//! keys      for each node a u32: the CRC-32 of its vector
//! links     for each node a varint for how many it had, one for how many of them are here, and for each of these, ascending, a
//!           varint: by how much the place of the node that it leads to exceeds that of the link before it
//! ```
//!
//! Nodes are sorted by ordinal and number, and a link leads to a node by its place among them. Whoever reads such a file believes
//! nothing of it.

use std::fs::File;
use std::io::{self, BufReader, BufWriter, Read, Write};
use std::path::Path;

/// "SDL1"
const MAGIC: u32 = 0x314c_4453;
const HEAD_BYTES: u64 = 8;
/// Of a node: its ordinal, its number, its key and the counts of its links.
const NODE_BYTES_MIN: u64 = 8;
/// More than any graph gives a node.
const LINKS_MAX: u32 = 1024;
const BUFFER_BYTES: usize = 1 << 18;

/// A node as a file names it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LinkedNode {
    pub ordinal: u32,
    pub number: u16,
    pub key: u32,
}

/// Writes a file; gives its bytes. `links_of` puts the links of the node at a place, ascending, into an empty list, and
/// gives how many it had when none of its neighbours was gone.
pub fn write_link_file(
    path: &Path,
    nodes: impl ExactSizeIterator<Item = LinkedNode> + Clone,
    mut links_of: impl FnMut(u32, &mut Vec<u32>) -> usize,
) -> io::Result<u64> {
    let mut writer = LinkWriter { file: BufWriter::with_capacity(BUFFER_BYTES, File::create(path)?), bytes: 0 };
    let count = nodes.len() as u32;
    writer.put(&MAGIC.to_le_bytes())?;
    writer.put(&count.to_le_bytes())?;
    let mut last = 0;
    for node in nodes.clone() {
        writer.varint(node.ordinal - last)?;
        last = node.ordinal;
    }
    nodes.clone().try_for_each(|node| writer.varint(u32::from(node.number)))?;
    nodes.clone().try_for_each(|node| writer.put(&node.key.to_le_bytes()))?;
    let mut links = Vec::new();
    for place in 0..count {
        links.clear();
        let had = links_of(place, &mut links);
        writer.varint(had as u32)?;
        writer.varint(links.len() as u32)?;
        let mut last = 0;
        for &link in &links {
            writer.varint(link - last)?;
            last = link;
        }
    }
    writer.file.flush()?;
    Ok(writer.bytes)
}

struct LinkWriter {
    file: BufWriter<File>,
    bytes: u64,
}

impl LinkWriter {
    fn put(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.bytes += bytes.len() as u64;
        self.file.write_all(bytes)
    }

    fn varint(&mut self, value: u32) -> io::Result<()> {
        let (mut bytes, mut length, mut rest) = ([0u8; 5], 0, value);
        while rest >= 0x80 {
            bytes[length] = rest as u8 | 0x80;
            length += 1;
            rest >>= 7;
        }
        bytes[length] = rest as u8;
        self.put(&bytes[..=length])
    }
}

/// A file that is read: its nodes, and then their links one after another.
pub struct LinkFile {
    pub nodes: Vec<LinkedNode>,
    links: LinkReader,
}

impl LinkFile {
    /// Error: `InvalidData` for a file that nobody can have written, `UnexpectedEof` for one that is cut.
    pub fn open(path: &Path) -> io::Result<Self> {
        let file = File::open(path)?;
        let bytes = file.metadata()?.len();
        let mut reader = LinkReader { file: BufReader::with_capacity(BUFFER_BYTES, file) };
        if reader.word()? != MAGIC {
            return Err(invalid("no file of links"));
        }
        let count = reader.word()?;
        if u64::from(count) > bytes.saturating_sub(HEAD_BYTES) / NODE_BYTES_MIN {
            return Err(invalid("more nodes than the file has room for"));
        }
        let mut nodes = Vec::with_capacity(count as usize);
        let mut ordinal = 0u32;
        for _ in 0..count {
            ordinal = ordinal.checked_add(reader.varint()?).ok_or_else(|| invalid("an ordinal beyond all"))?;
            nodes.push(LinkedNode { ordinal, number: 0, key: 0 });
        }
        for node in &mut nodes {
            node.number = u16::try_from(reader.varint()?).map_err(|_| invalid("a vector's number beyond all"))?;
        }
        for node in &mut nodes {
            node.key = reader.word()?;
        }
        if !nodes.is_sorted_by(|a, b| (a.ordinal, a.number) < (b.ordinal, b.number)) {
            return Err(invalid("nodes out of order"));
        }
        Ok(Self { nodes, links: reader })
    }

    /// Puts the links of the next node into the list: places of nodes. Gives how many it had, which may be more.
    pub fn next_links(&mut self, links: &mut Vec<u32>) -> io::Result<usize> {
        links.clear();
        let (had, count) = (self.links.varint()?, self.links.varint()?);
        if had > LINKS_MAX || count > had {
            return Err(invalid("more links than a node can have"));
        }
        let mut place = 0u32;
        for _ in 0..count {
            place = place.saturating_add(self.links.varint()?);
            if place as usize >= self.nodes.len() {
                return Err(invalid("a link to no node"));
            }
            links.push(place);
        }
        links.dedup();
        Ok(had as usize)
    }
}

struct LinkReader {
    file: BufReader<File>,
}

impl LinkReader {
    fn word(&mut self) -> io::Result<u32> {
        let mut bytes = [0; 4];
        self.file.read_exact(&mut bytes)?;
        Ok(u32::from_le_bytes(bytes))
    }

    fn varint(&mut self) -> io::Result<u32> {
        let mut value = 0u64;
        for shift in (0..35).step_by(7) {
            let mut byte = [0];
            self.file.read_exact(&mut byte)?;
            value |= u64::from(byte[0] & 0x7f) << shift;
            if byte[0] & 0x80 == 0 {
                return u32::try_from(value).map_err(|_| invalid("a number beyond all"));
            }
        }
        Err(invalid("a number without an end"))
    }
}

fn invalid(what: &'static str) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::path::PathBuf;

    use super::*;

    struct Temporary(PathBuf);

    impl Temporary {
        fn new(name: &str) -> Self {
            Self(std::env::temp_dir().join(format!("sundew-links-{name}-{}", std::process::id())))
        }
    }

    impl Drop for Temporary {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    fn nodes() -> Vec<LinkedNode> {
        let node =
            |at: u32| LinkedNode { ordinal: at / 2 * 300, number: at as u16 % 2, key: at.wrapping_mul(0x9e37_79b9) };
        (0..50).map(node).collect()
    }

    fn links_of(place: u32, links: &mut Vec<u32>) -> usize {
        links.extend((0..place % 33).map(|at| (at * 6 + place) % 50));
        links.sort_unstable();
        links.dedup();
        links.len() + place as usize % 3
    }

    type Links = (usize, Vec<u32>);

    fn read(path: &Path) -> io::Result<(Vec<LinkedNode>, Vec<Links>)> {
        let mut file = LinkFile::open(path)?;
        let mut links = Vec::new();
        let count = file.nodes.len();
        let mut next = || file.next_links(&mut links).map(|had| (had, links.clone()));
        let all: io::Result<Vec<Links>> = (0..count).map(|_| next()).collect();
        Ok((file.nodes, all?))
    }

    #[test]
    fn a_file_is_read_as_it_was_written() {
        let path = Temporary::new("whole");
        let bytes = write_link_file(&path.0, nodes().into_iter(), links_of).expect("a file");
        assert_eq!(fs::metadata(&path.0).expect("a file").len(), bytes);
        let (found, links) = read(&path.0).expect("the file");
        assert_eq!(found, nodes());
        for (links, place) in links.into_iter().zip(0..) {
            let mut expected = Vec::new();
            let had = links_of(place, &mut expected);
            assert_eq!(links, (had, expected));
        }
    }

    #[test]
    fn a_file_that_was_cut_or_changed_is_refused_or_leads_to_nodes_that_exist() {
        let path = Temporary::new("changed");
        write_link_file(&path.0, nodes().into_iter(), links_of).expect("a file");
        let whole = fs::read(&path.0).expect("the file");
        for length in 0..whole.len() {
            fs::write(&path.0, &whole[..length]).expect("written");
            assert!(read(&path.0).is_err(), "cut to {length} of {} bytes", whole.len());
        }
        let mut refused = 0;
        for at in 0..8 * whole.len() {
            let mut bytes = whole.clone();
            bytes[at / 8] ^= 1 << (at % 8);
            fs::write(&path.0, &bytes).expect("written");
            match read(&path.0) {
                Ok((nodes, links)) => {
                    assert!(links.iter().flat_map(|(_, links)| links).all(|&link| (link as usize) < nodes.len()));
                    assert!(nodes.is_sorted_by_key(|node| (node.ordinal, node.number)));
                }
                Err(_) => refused += 1,
            }
        }
        assert!(refused > whole.len(), "{refused} of {} changes were refused", 8 * whole.len());
    }

    #[test]
    fn a_file_that_says_more_than_it_has_room_for_takes_no_memory() {
        let path = Temporary::new("huge");
        for nodes in [3, u32::MAX] {
            let head = [MAGIC.to_le_bytes(), nodes.to_le_bytes()].concat();
            fs::write(&path.0, [head, vec![0; 20]].concat()).expect("written");
            let refused = LinkFile::open(&path.0).map(|_| ()).expect_err("refused");
            assert_eq!(refused.kind(), io::ErrorKind::InvalidData, "{refused}");
        }
        // One node with more links than any can have, and then one whose numbers have no end.
        for rest in [&[0, 0, 1, 2, 3, 4, 0xff, 0xff, 3, 1, 0][..], &[0, 0, 1, 2, 3, 4, 0xff, 0xff, 0xff, 0xff, 0xff]] {
            let head = [MAGIC.to_le_bytes(), 1u32.to_le_bytes()].concat();
            fs::write(&path.0, [&head, rest].concat()).expect("written");
            assert_eq!(read(&path.0).map(|_| ()).expect_err("refused").kind(), io::ErrorKind::InvalidData);
        }
    }
}
