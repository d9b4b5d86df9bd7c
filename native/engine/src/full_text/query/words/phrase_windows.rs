//! The places of a text at which the words of a phrase stand as near as its slop allows.

/// Calls `found` for every window of shifts, `slop` wide, that has a word of every position, with the shifts in it. `shifts`:
/// for each position of the phrase where its words stand in the text, each less the position's offset; ascending. Two positions
/// never share a word of the text: with shifts of one window they could, when `slop` is not 0.
pub fn phrase_windows(shifts: &[Vec<i64>], offsets: &[i64], slop: i64, mut found: impl FnMut(&[Vec<i64>])) {
    let mut starts: Vec<i64> = if slop == 0 { shifts[0].clone() } else { shifts.iter().flatten().copied().collect() };
    starts.sort_unstable();
    starts.dedup();
    let window = |list: &[i64], start: i64| -> Vec<i64> {
        let from = list.partition_point(|&shift| shift < start);
        list[from..].iter().take_while(|&&shift| shift <= start + slop).copied().collect()
    };
    for start in starts {
        let candidates: Vec<Vec<i64>> = shifts.iter().map(|list| window(list, start)).collect();
        if candidates.iter().any(Vec::is_empty) {
            continue;
        }
        if slop == 0 || can_choose_apart(&places_of(&candidates, offsets)) {
            found(&candidates);
        }
    }
}

/// Where the words of shifts stand.
pub fn places_of(shifts: &[Vec<i64>], offsets: &[i64]) -> Vec<Vec<i64>> {
    shifts.iter().zip(offsets).map(|(list, offset)| list.iter().map(|shift| shift + offset).collect()).collect()
}

/// Whether every list can give a number that no other list gives.
pub fn can_choose_apart(lists: &[Vec<i64>]) -> bool {
    fn assign(list: usize, lists: &[Vec<i64>], taken: &mut Vec<(i64, usize)>, tried: &mut Vec<i64>) -> bool {
        for &number in &lists[list] {
            if tried.contains(&number) {
                continue;
            }
            tried.push(number);
            match taken.iter().position(|(chosen, _)| *chosen == number) {
                None => {
                    taken.push((number, list));
                    return true;
                }
                Some(at) => {
                    let holder = taken[at].1;
                    if assign(holder, lists, taken, tried) {
                        taken[at].1 = list;
                        return true;
                    }
                }
            }
        }
        false
    }
    let mut taken = Vec::new();
    (0..lists.len()).all(|list| assign(list, lists, &mut taken, &mut Vec::new()))
}

#[cfg(test)]
mod tests {
    use super::phrase_windows;

    /// Positions of the words of each list; offsets are 0, 1, ...
    fn frequency(lists: &[&[i64]], slop: i64) -> u32 {
        let offsets: Vec<i64> = (0..lists.len() as i64).collect();
        let shift = |(offset, positions): (&i64, &&[i64])| positions.iter().map(|at| at - offset).collect();
        let shifts: Vec<Vec<i64>> = offsets.iter().zip(lists).map(shift).collect();
        let mut frequency = 0;
        phrase_windows(&shifts, &offsets, slop, |_| frequency += 1);
        frequency
    }

    #[test]
    fn words_in_a_row() {
        assert_eq!(frequency(&[&[3], &[4]], 0), 1);
        assert_eq!(frequency(&[&[3], &[5]], 0), 0);
        assert_eq!(frequency(&[&[0, 7], &[1, 8]], 0), 2);
    }

    #[test]
    fn slop_counts_moves() {
        assert_eq!(frequency(&[&[3], &[5]], 1), 1);
        assert_eq!(frequency(&[&[4], &[3]], 1), 0);
        assert_eq!(frequency(&[&[4], &[3]], 2), 1);
        assert_eq!(frequency(&[&[0], &[2], &[4]], 1), 0);
        assert_eq!(frequency(&[&[0], &[2], &[4]], 2), 1);
    }

    #[test]
    fn one_word_of_the_document_does_not_stand_for_two() {
        assert_eq!(frequency(&[&[5], &[5]], 3), 0);
        assert!(frequency(&[&[5, 6], &[5, 6]], 3) > 0);
        assert_eq!(frequency(&[&[5, 6], &[5, 6], &[5, 6]], 9), 0);
    }
}
