//! GeoPoints on earth: geohash cells and distances.

const ALPHABET: &[u8; 32] = b"0123456789bcdefghjkmnpqrstuvwxyz";

/// Mean radius, metres (IUGG).
const EARTH_RADIUS: f64 = 6_371_008.771_4;

#[derive(Debug, Clone, Copy, PartialEq)]
pub struct GeoPoint {
    pub lat: f64,
    pub lon: f64,
}

impl GeoPoint {
    /// `None` off the globe.
    pub fn new(lat: f64, lon: f64) -> Option<Self> {
        let is_valid = (-90.0..=90.0).contains(&lat) && (-180.0..=180.0).contains(&lon);
        is_valid.then_some(Self { lat, lon })
    }

    /// Bits of the geohash of `precision` characters (at most 12): longitude and latitude in turn.
    pub fn cell(self, precision: u32) -> u64 {
        let (mut lat, mut lon) = ((-90.0, 90.0), (-180.0, 180.0));
        let mut cell = 0;
        for bit in 0..precision * 5 {
            let (value, bounds): (f64, &mut (f64, f64)) =
                if bit % 2 == 0 { (self.lon, &mut lon) } else { (self.lat, &mut lat) };
            let middle = (bounds.0 + bounds.1) / 2.0;
            let is_upper = value >= middle;
            cell = cell << 1 | u64::from(is_upper);
            if is_upper { bounds.0 = middle } else { bounds.1 = middle }
        }
        cell
    }

    /// Great-circle distance in metres (haversine formula).
    pub fn distance_to(self, other: Self) -> f64 {
        let (lat, other_lat) = (self.lat.to_radians(), other.lat.to_radians());
        let half_sine = |from: f64, to: f64| ((to - from) / 2.0).sin().powi(2);
        let haversine = half_sine(lat, other_lat)
            + lat.cos() * other_lat.cos() * half_sine(self.lon.to_radians(), other.lon.to_radians());
        2.0 * EARTH_RADIUS * haversine.sqrt().min(1.0).asin()
    }
}

/// The characters of a cell.
pub fn geohash(cell: u64, precision: u32) -> String {
    (0..precision).rev().map(|at| char::from(ALPHABET[(cell >> (at * 5)) as usize & 31])).collect()
}

#[cfg(test)]
mod tests {
    use super::{GeoPoint, geohash};

    fn point(lat: f64, lon: f64) -> GeoPoint {
        GeoPoint::new(lat, lon).expect("a point")
    }

    #[test]
    fn geohashes_of_known_points() {
        for (lat, lon, expected) in
            [(57.64911, 10.40744, "u4pruydqqvj"), (42.6, -5.6, "ezs42"), (0.0, 0.0, "s0000"), (90.0, 180.0, "zzzz")]
        {
            let precision = expected.len() as u32;
            assert_eq!(geohash(point(lat, lon).cell(precision), precision), expected);
        }
    }

    #[test]
    fn distances() {
        let berlin_paris = point(52.52, 13.405).distance_to(point(48.8566, 2.3522));
        assert!((berlin_paris - 877_464.0).abs() < 500.0, "{berlin_paris}");
        let antipodes = point(0.0, 0.0).distance_to(point(0.0, 180.0));
        assert!((antipodes - 20_015_114.0).abs() < 10.0, "{antipodes}");
        assert_eq!(point(91.0_f64.min(90.0), 0.0).distance_to(point(90.0, 0.0)), 0.0);
        assert!(GeoPoint::new(91.0, 0.0).is_none() && GeoPoint::new(0.0, -180.5).is_none());
    }
}
