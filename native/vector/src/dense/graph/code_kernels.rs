//! Dot products of eight-bit codes: one vector with the nodes of many rows, by what the processor has.

use std::sync::LazyLock;

use super::layout::NODE_HEAD_BYTES;

/// The codes of the nodes of a graph.
#[derive(Clone, Copy)]
pub struct NodeCodes {
    /// The first node.
    pub nodes: *const u8,
    pub stride: usize,
}

impl NodeCodes {
    /// # Safety
    /// The row is a node.
    #[inline(always)]
    unsafe fn codes(self, row: u32) -> *const i8 {
        // SAFETY: the caller vouches for the row.
        unsafe { self.nodes.add(row as usize * self.stride + NODE_HEAD_BYTES).cast() }
    }
}

/// # Safety
/// All rows are nodes, whose codes are as long as the query; `dots` is as long as `rows`.
type Dots = unsafe fn(query: &[i8], codes: NodeCodes, rows: &[u32], dots: &mut [i32]);

static DOTS: LazyLock<Dots> = LazyLock::new(choose);

fn choose() -> Dots {
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512bw") && is_x86_feature_detected!("avx512vnni") {
            return x86::dots_vnni;
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("avxvnni") {
            return x86::dots_vnni_256;
        }
        if is_x86_feature_detected!("avx2") {
            return x86::dots_avx2;
        }
    }
    #[cfg(target_arch = "aarch64")]
    {
        return neon::dots_neon;
    }
    #[cfg(not(target_arch = "aarch64"))]
    dots_portable
}

/// The dot product of the query's codes with those of each node.
///
/// # Safety
/// All rows are nodes, whose codes are as long as the query; `dots` is as long as `rows`.
#[inline]
pub unsafe fn dots(query: &[i8], codes: NodeCodes, rows: &[u32], dots: &mut [i32]) {
    // SAFETY: the same promise.
    unsafe { (*DOTS)(query, codes, rows, dots) }
}

#[cfg(not(target_arch = "aarch64"))]
unsafe fn dots_portable(query: &[i8], codes: NodeCodes, rows: &[u32], dots: &mut [i32]) {
    for (dot, &row) in dots.iter_mut().zip(rows) {
        // SAFETY: the node has as many codes as the query.
        let codes = unsafe { std::slice::from_raw_parts(codes.codes(row), query.len()) };
        *dot = query.iter().zip(codes).map(|(&a, &b)| i32::from(a) * i32::from(b)).sum();
    }
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    use super::NodeCodes;

    /// VNNI multiplies bytes without sign by bytes with one, so 128 is added to the query's codes, and 128 times the sum
    /// of the node's codes, which the node keeps, is taken off the result.
    #[target_feature(enable = "avx512f,avx512bw,avx512vnni")]
    pub unsafe fn dots_vnni(query: &[i8], codes: NodeCodes, rows: &[u32], dots: &mut [i32]) {
        let count = query.len();
        let (whole, rest) = (count / 64 * 64, count % 64);
        let mask: __mmask64 = if rest == 0 { 0 } else { u64::MAX >> (64 - rest) };
        let bias = _mm512_set1_epi8(i8::MIN);
        for (dot, &row) in dots.iter_mut().zip(rows) {
            // SAFETY: loads lie below `count` codes of the query and of the node, the last one is masked; the sum lies
            // in the node's head, 8 bytes before the codes.
            unsafe {
                let node = codes.codes(row);
                let mut sums = [_mm512_setzero_si512(); 2];
                let mut at = 0;
                while at + 128 <= whole {
                    for (lane, sum) in sums.iter_mut().enumerate() {
                        let a = _mm512_loadu_si512(query.as_ptr().add(at + 64 * lane).cast());
                        let b = _mm512_loadu_si512(node.add(at + 64 * lane).cast());
                        *sum = _mm512_dpbusd_epi32(*sum, _mm512_xor_si512(a, bias), b);
                    }
                    at += 128;
                }
                if at < whole {
                    let a = _mm512_loadu_si512(query.as_ptr().add(at).cast());
                    let b = _mm512_loadu_si512(node.add(at).cast());
                    sums[0] = _mm512_dpbusd_epi32(sums[0], _mm512_xor_si512(a, bias), b);
                }
                if mask != 0 {
                    let a = _mm512_maskz_loadu_epi8(mask, query.as_ptr().add(whole));
                    let b = _mm512_maskz_loadu_epi8(mask, node.add(whole));
                    sums[1] = _mm512_dpbusd_epi32(sums[1], _mm512_xor_si512(a, bias), b);
                }
                let code_sum = node.sub(8).cast::<i32>().read_unaligned();
                *dot = _mm512_reduce_add_epi32(_mm512_add_epi32(sums[0], sums[1])) - 128 * code_sum;
            }
        }
    }

    /// The same for processors with VNNI for 256 bits only.
    #[target_feature(enable = "avx2,avxvnni")]
    pub unsafe fn dots_vnni_256(query: &[i8], codes: NodeCodes, rows: &[u32], dots: &mut [i32]) {
        let whole = query.len() / 32 * 32;
        let bias = _mm256_set1_epi8(i8::MIN);
        for (dot, &row) in dots.iter_mut().zip(rows) {
            // SAFETY: loads lie below the number of codes of the query and of the node; the sum lies in the node's head,
            // 8 bytes before the codes.
            unsafe {
                let node = codes.codes(row);
                let mut sums = [_mm256_setzero_si256(); 2];
                for at in (0..whole).step_by(32) {
                    let a = _mm256_loadu_si256(query.as_ptr().add(at).cast());
                    let b = _mm256_loadu_si256(node.add(at).cast());
                    let lane = at / 32 % 2;
                    sums[lane] = _mm256_dpbusd_avx_epi32(sums[lane], _mm256_xor_si256(a, bias), b);
                }
                let rest: i32 = rest(query, node, whole).map(|(a, b)| (a + 128) * b).sum();
                let code_sum = node.sub(8).cast::<i32>().read_unaligned();
                *dot = total(_mm256_add_epi32(sums[0], sums[1])) + rest - 128 * code_sum;
            }
        }
    }

    /// Products of bytes are added in pairs of sixteen bits, which hold twice 127 times 127: codes are never -128. Of the two
    /// factors one has to be without sign, so that the query's signs go over to the node's codes.
    #[target_feature(enable = "avx2")]
    pub unsafe fn dots_avx2(query: &[i8], codes: NodeCodes, rows: &[u32], dots: &mut [i32]) {
        let whole = query.len() / 32 * 32;
        let ones = _mm256_set1_epi16(1);
        for (dot, &row) in dots.iter_mut().zip(rows) {
            // SAFETY: loads lie below the number of codes of the query and of the node.
            unsafe {
                let node = codes.codes(row);
                let mut sums = [_mm256_setzero_si256(); 2];
                for at in (0..whole).step_by(32) {
                    let a = _mm256_loadu_si256(query.as_ptr().add(at).cast());
                    let b = _mm256_loadu_si256(node.add(at).cast());
                    let pairs = _mm256_maddubs_epi16(_mm256_abs_epi8(a), _mm256_sign_epi8(b, a));
                    let lane = at / 32 % 2;
                    sums[lane] = _mm256_add_epi32(sums[lane], _mm256_madd_epi16(pairs, ones));
                }
                let rest: i32 = rest(query, node, whole).map(|(a, b)| a * b).sum();
                *dot = total(_mm256_add_epi32(sums[0], sums[1])) + rest;
            }
        }
    }

    /// The codes of both from `from` on.
    ///
    /// # Safety
    /// The node has as many codes as the query.
    unsafe fn rest(query: &[i8], node: *const i8, from: usize) -> impl Iterator<Item = (i32, i32)> {
        // SAFETY: the caller vouches for the length.
        let codes = unsafe { std::slice::from_raw_parts(node, query.len()) };
        query[from..].iter().zip(&codes[from..]).map(|(&a, &b)| (i32::from(a), i32::from(b)))
    }

    #[target_feature(enable = "avx2")]
    fn total(sums: __m256i) -> i32 {
        let half = _mm_add_epi32(_mm256_castsi256_si128(sums), _mm256_extracti128_si256::<1>(sums));
        let quarter = _mm_add_epi32(half, _mm_shuffle_epi32::<0b01_00_11_10>(half));
        _mm_cvtsi128_si32(_mm_add_epi32(quarter, _mm_shuffle_epi32::<0b10_11_00_01>(quarter)))
    }
}

#[cfg(target_arch = "aarch64")]
mod neon {
    use std::arch::aarch64::*;

    use super::NodeCodes;

    pub unsafe fn dots_neon(query: &[i8], codes: NodeCodes, rows: &[u32], dots: &mut [i32]) {
        let whole = query.len() / 16 * 16;
        for (dot, &row) in dots.iter_mut().zip(rows) {
            // SAFETY: loads lie below the number of codes of the query and of the node; NEON is part of the architecture.
            unsafe {
                let node = codes.codes(row);
                let mut sum = vdupq_n_s32(0);
                for at in (0..whole).step_by(16) {
                    let (a, b) = (vld1q_s8(query.as_ptr().add(at)), vld1q_s8(node.add(at)));
                    sum = vpadalq_s16(sum, vmull_s8(vget_low_s8(a), vget_low_s8(b)));
                    sum = vpadalq_s16(sum, vmull_high_s8(a, b));
                }
                *dot = vaddvq_s32(sum);
                for (at, &code) in query.iter().enumerate().skip(whole) {
                    *dot += i32::from(code) * i32::from(*node.add(at));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_kernel_gives_the_plain_sum() {
        for count in (1..140).chain([384, 768, 1000]) {
            let stride = (NODE_HEAD_BYTES + count).next_multiple_of(64);
            let code = |at: usize| (at * 89 % 255) as i32 - 127;
            let mut nodes = vec![0u8; 3 * stride];
            for node in 0..3 {
                let at = node * stride + NODE_HEAD_BYTES;
                let codes: Vec<i32> = (0..count).map(|dimension| code(dimension * 7 + node)).collect();
                nodes[at - 8..at - 4].copy_from_slice(&codes.iter().sum::<i32>().to_le_bytes());
                codes.iter().enumerate().for_each(|(dimension, &code)| nodes[at + dimension] = code as u8);
            }
            let query: Vec<i8> = (0..count).map(|at| code(at * 3 + 1) as i8).collect();
            let plain = |node: usize| -> i32 { (0..count).map(|at| code(at * 3 + 1) * code(at * 7 + node)).sum() };
            let wanted = [plain(2), plain(0), plain(1)];
            let mut kernels: Vec<Dots> = vec![choose()];
            #[cfg(target_arch = "x86_64")]
            {
                kernels.push(dots_portable);
                if is_x86_feature_detected!("avx2") {
                    kernels.push(x86::dots_avx2);
                }
                if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("avxvnni") {
                    kernels.push(x86::dots_vnni_256);
                }
            }
            for kernel in kernels {
                let mut found = [0; 3];
                // SAFETY: three nodes of `count` codes.
                unsafe { kernel(&query, NodeCodes { nodes: nodes.as_ptr(), stride }, &[2, 0, 1], &mut found) };
                assert_eq!(found, wanted, "{count} dimensions");
            }
        }
    }
}
