//! The keys of a dictionary with their numbers: a finite-state transducer as the crate `fst` lays it out (its version 2), which
//! `tantivy-fst` reads. Endings that terms share are written for each, so that no table of written nodes is needed: such a
//! dictionary is read as any other, and is larger by a byte or two for each letter of a term behind what it shares with the
//! term before it.

/// Of the layout, and the type of the transducer.
const HEAD: [u64; 2] = [2, 0];

/// The address of a node that ends a term and has no transitions; it has no bytes.
const EMPTY: usize = 0;

/// One transition to the node that was written last, its letter in front.
const NEXT: u8 = 0b1100_0000;

/// A term ends at the node.
const FINAL: u8 = 0b0100_0000;

/// Most transitions whose number has room in the first byte.
const COUNT_MAX: usize = 0b0011_1111;

/// Nodes with more transitions have a table of them by letter.
const INDEX_MIN: usize = 33;

pub struct TermTrie {
    bytes: Vec<u8>,
    /// Of the last byte that was written.
    last_address: usize,
    terms: u64,
    last: Vec<u8>,
    /// The nodes on the way of the last term, from the root.
    open: Vec<Node>,
    /// Of the open nodes, one after another.
    transitions: Vec<Transition>,
}

struct Node {
    /// That leads to it.
    letter: u8,
    /// The number of its first term.
    first: u64,
    ends_term: bool,
    /// The first of its transitions.
    from: usize,
}

struct Transition {
    letter: u8,
    /// Added to the number of the term.
    output: u64,
    address: usize,
}

impl TermTrie {
    pub fn new() -> Self {
        let bytes: Vec<u8> = HEAD.iter().flat_map(|part| part.to_le_bytes()).collect();
        Self {
            last_address: bytes.len() - 1,
            bytes,
            terms: 0,
            last: Vec::new(),
            open: vec![Node { letter: 0, first: 0, ends_term: false, from: 0 }],
            transitions: Vec::new(),
        }
    }

    /// Terms come in the order of their bytes, each once; the first has the number 0.
    pub fn insert(&mut self, term: &[u8]) {
        let shared = term.iter().zip(&self.last).take_while(|(letter, of_last)| letter == of_last).count();
        self.close_below(shared);
        for letter in &term[shared..] {
            let from = self.transitions.len();
            self.open.push(Node { letter: *letter, first: self.terms, ends_term: false, from });
        }
        if let Some(end) = self.open.last_mut() {
            end.ends_term = true;
        }
        self.last.clear();
        self.last.extend_from_slice(term);
        self.terms += 1;
    }

    pub fn finish(mut self) -> Vec<u8> {
        self.close_below(0);
        let root = self.open.pop().map_or(EMPTY, |root| self.write(&root));
        self.bytes.extend(self.terms.to_le_bytes());
        self.bytes.extend((root as u64).to_le_bytes());
        self.bytes
    }

    /// No more terms come that begin with more than `letters` of the last one.
    fn close_below(&mut self, letters: usize) {
        while self.open.len() > letters + 1 {
            let Some(node) = self.open.pop() else { return };
            let address = self.write(&node);
            self.transitions.truncate(node.from);
            let output = node.first - self.open.last().map_or(0, |parent| parent.first);
            self.transitions.push(Transition { letter: node.letter, output, address });
        }
    }

    /// A node is read from its last byte backwards; that byte's place is its address.
    fn write(&mut self, node: &Node) -> usize {
        let Self { bytes, transitions, .. } = self;
        let start = bytes.len();
        match &transitions[node.from..] {
            [] if node.ends_term => return EMPTY,
            [only] if !node.ends_term && only.output == 0 && only.address == self.last_address => {
                bytes.extend([only.letter, NEXT]);
            }
            several => write_any(bytes, several, node.ends_term, start),
        }
        self.last_address = bytes.len() - 1;
        self.last_address
    }
}

fn write_any(bytes: &mut Vec<u8>, transitions: &[Transition], ends_term: bool, start: usize) {
    let distance = |to: &Transition| if to.address == EMPTY { 0 } else { (start - to.address) as u64 };
    let output_width = match transitions.iter().map(|to| to.output).max() {
        None | Some(0) => 0,
        Some(most) => width(most),
    };
    let distance_width = transitions.iter().map(|to| width(distance(to))).max().unwrap_or(0);
    if ends_term {
        // The number of a term that ends here is that of the way to here.
        bytes.resize(bytes.len() + output_width, 0);
    }
    for to in transitions.iter().rev() {
        bytes.extend(&to.output.to_le_bytes()[..output_width]);
    }
    for to in transitions.iter().rev() {
        bytes.extend(&distance(to).to_le_bytes()[..distance_width]);
    }
    bytes.extend(transitions.iter().rev().map(|to| to.letter));
    if transitions.len() >= INDEX_MIN {
        let mut index = [u8::MAX; 256];
        transitions.iter().enumerate().for_each(|(at, to)| index[usize::from(to.letter)] = at as u8);
        bytes.extend(index);
    }
    bytes.push((distance_width << 4 | output_width) as u8);
    let end = if ends_term { FINAL } else { 0 };
    match transitions.len() {
        count @ 1..=COUNT_MAX => bytes.push(end | count as u8),
        // A number of 256 is told as 1, which would have room in the first byte.
        count => bytes.extend([if count == 256 { 1 } else { count as u8 }, end]),
    }
}

/// Bytes that hold the number, at least one.
fn width(number: u64) -> usize {
    (u64::BITS - number.leading_zeros()).div_ceil(8).max(1) as usize
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use tantivy_fst::raw::Fst;
    use tantivy_fst::{Map, Streamer};

    use super::*;
    use crate::full_text::random::Random;

    fn read_back(terms: &BTreeSet<Vec<u8>>) {
        let mut trie = TermTrie::new();
        terms.iter().for_each(|term| trie.insert(term));
        let map = Map::from(Fst::new(trie.finish()).expect("a transducer"));
        assert_eq!(map.len(), terms.len());
        for (number, term) in (0..).zip(terms) {
            assert_eq!(map.get(term), Some(number), "{term:?}");
            let longer = [term.as_slice(), b"\x01"].concat();
            assert_eq!(map.get(&longer).is_some(), terms.contains(&longer), "{longer:?}");
        }
        let (mut stream, mut expected) = (map.stream(), (0..).zip(terms));
        while let Some((term, number)) = stream.next() {
            assert_eq!(expected.next(), Some((number, &term.to_vec())));
        }
        assert_eq!(expected.next(), None);
    }

    #[test]
    fn every_term_is_found_by_its_number_and_no_other_is() {
        read_back(&BTreeSet::from([Vec::new()]));
        read_back(&BTreeSet::from([b"soup".to_vec()]));
        read_back(&BTreeSet::from([Vec::new(), b"a".to_vec(), b"ab".to_vec(), b"abc".to_vec(), b"b".to_vec()]));
        read_back(&(0..=255).map(|letter| vec![letter]).collect());
        read_back(&(0..=255).map(|letter| vec![b'x', letter, b'y']).chain([b"x".to_vec()]).collect());
        read_back(&BTreeSet::from([vec![7; 65_000], vec![7; 64_999]]));
        for seed in 1..=40 {
            let mut random = Random(seed);
            let (letters, longest) = (1 + random.below(if seed % 2 == 0 { 4 } else { 256 }), 1 + random.below(40));
            let term = |random: &mut Random| {
                (0..random.below(longest)).map(|_| random.below(letters) as u8).collect::<Vec<u8>>()
            };
            println!("seed {seed}");
            read_back(&(0..random.below(if seed > 35 { 30_000 } else { 500 })).map(|_| term(&mut random)).collect());
        }
    }
}
