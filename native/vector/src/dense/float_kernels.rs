//! Dot products and squared distances of float32 vectors, by what the processor has.

/// Sum over all dimensions of `a * b`. Both must have the same length.
pub fn dot(a: &[f32], b: &[f32]) -> f32 {
    sum::<false>(a, b)
}

/// Sum over all dimensions of `(a - b)^2`. Both must have the same length.
pub fn squared_distance(a: &[f32], b: &[f32]) -> f32 {
    sum::<true>(a, b)
}

#[inline]
fn sum<const DIFFERENCE: bool>(a: &[f32], b: &[f32]) -> f32 {
    assert_eq!(a.len(), b.len(), "vectors of different dimensions");
    #[cfg(target_arch = "x86_64")]
    {
        if is_x86_feature_detected!("avx512f") {
            // SAFETY: the feature was detected; the lengths are equal.
            return unsafe { x86::sum_avx512::<DIFFERENCE>(a, b) };
        }
        if is_x86_feature_detected!("avx2") && is_x86_feature_detected!("fma") {
            // SAFETY: the features were detected; the lengths are equal.
            return unsafe { x86::sum_avx2::<DIFFERENCE>(a, b) };
        }
    }
    sum_portable::<DIFFERENCE>(a, b)
}

/// Sixteen sums side by side, which compilers turn into vector instructions of any width (NEON among them).
fn sum_portable<const DIFFERENCE: bool>(a: &[f32], b: &[f32]) -> f32 {
    let term = |a: f32, b: f32| if DIFFERENCE { (a - b) * (a - b) } else { a * b };
    let mut lanes = [0.0f32; 16];
    let (a_blocks, a_rest) = a.as_chunks::<16>();
    let (b_blocks, b_rest) = b.as_chunks::<16>();
    for (a, b) in a_blocks.iter().zip(b_blocks) {
        for ((lane, &a), &b) in lanes.iter_mut().zip(a).zip(b) {
            *lane += term(a, b);
        }
    }
    let rest: f32 = a_rest.iter().zip(b_rest).map(|(&a, &b)| term(a, b)).sum();
    lanes.iter().sum::<f32>() + rest
}

#[cfg(target_arch = "x86_64")]
mod x86 {
    use std::arch::x86_64::*;

    /// # Safety
    /// The processor has AVX-512F, and both slices have the same length.
    #[target_feature(enable = "avx512f")]
    pub unsafe fn sum_avx512<const DIFFERENCE: bool>(a: &[f32], b: &[f32]) -> f32 {
        let (a_at, b_at, count) = (a.as_ptr(), b.as_ptr(), a.len());
        let mut sums = [_mm512_setzero_ps(); 4];
        let mut at = 0;
        // SAFETY: every load lies below `count`; the last one is masked.
        unsafe {
            while at + 64 <= count {
                for (lane, sum) in sums.iter_mut().enumerate() {
                    let a = _mm512_loadu_ps(a_at.add(at + 16 * lane));
                    let b = _mm512_loadu_ps(b_at.add(at + 16 * lane));
                    *sum = step::<DIFFERENCE>(a, b, *sum);
                }
                at += 64;
            }
            let mut lane = 0;
            while at < count {
                let left = (count - at).min(16);
                let mask = (0xffff_u32 >> (16 - left)) as __mmask16;
                let a = _mm512_maskz_loadu_ps(mask, a_at.add(at));
                let b = _mm512_maskz_loadu_ps(mask, b_at.add(at));
                sums[lane] = step::<DIFFERENCE>(a, b, sums[lane]);
                lane = (lane + 1) % 4;
                at += left;
            }
        }
        let [first, second, third, fourth] = sums;
        _mm512_reduce_add_ps(_mm512_add_ps(_mm512_add_ps(first, second), _mm512_add_ps(third, fourth)))
    }

    #[target_feature(enable = "avx512f")]
    #[inline]
    fn step<const DIFFERENCE: bool>(a: __m512, b: __m512, sum: __m512) -> __m512 {
        if DIFFERENCE {
            let difference = _mm512_sub_ps(a, b);
            _mm512_fmadd_ps(difference, difference, sum)
        } else {
            _mm512_fmadd_ps(a, b, sum)
        }
    }

    /// # Safety
    /// The processor has AVX2 and FMA, and both slices have the same length.
    #[target_feature(enable = "avx2,fma")]
    pub unsafe fn sum_avx2<const DIFFERENCE: bool>(a: &[f32], b: &[f32]) -> f32 {
        let whole = a.len() / 32 * 32;
        let mut sums = [_mm256_setzero_ps(); 4];
        for at in (0..whole).step_by(32) {
            for (lane, sum) in sums.iter_mut().enumerate() {
                // SAFETY: `at + 32` is at most the length of both.
                let (a, b) = unsafe {
                    (_mm256_loadu_ps(a.as_ptr().add(at + 8 * lane)), _mm256_loadu_ps(b.as_ptr().add(at + 8 * lane)))
                };
                *sum = if DIFFERENCE {
                    let difference = _mm256_sub_ps(a, b);
                    _mm256_fmadd_ps(difference, difference, *sum)
                } else {
                    _mm256_fmadd_ps(a, b, *sum)
                };
            }
        }
        let [first, second, third, fourth] = sums;
        let sum = _mm256_add_ps(_mm256_add_ps(first, second), _mm256_add_ps(third, fourth));
        let mut lanes = [0.0f32; 8];
        // SAFETY: eight floats are written to eight floats.
        unsafe { _mm256_storeu_ps(lanes.as_mut_ptr(), sum) };
        lanes.iter().sum::<f32>() + super::sum_portable::<DIFFERENCE>(&a[whole..], &b[whole..])
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    type Kernel = fn(&[f32], &[f32]) -> f32;

    #[test]
    fn every_length_gives_the_plain_sum() {
        for count in (0..140).chain([384, 768, 1000, 1536]) {
            let a: Vec<f32> = (0..count).map(|at| ((at * 37 % 101) as f32 - 50.0) / 50.0).collect();
            let b: Vec<f32> = (0..count).map(|at| ((at * 53 % 97) as f32 - 48.0) / 48.0).collect();
            let plain: f64 = a.iter().zip(&b).map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
            let apart: f64 = a.iter().zip(&b).map(|(&a, &b)| (f64::from(a) - f64::from(b)).powi(2)).sum();
            let forms: [Kernel; 2] = [dot, sum_portable::<false>];
            for form in forms {
                assert!((f64::from(form(&a, &b)) - plain).abs() < 1e-3, "dot of {count} dimensions");
            }
            let forms: [Kernel; 2] = [squared_distance, sum_portable::<true>];
            for form in forms {
                assert!((f64::from(form(&a, &b)) - apart).abs() < 1e-3, "distance of {count} dimensions");
            }
        }
    }
}
