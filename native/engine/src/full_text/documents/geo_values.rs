//! GeoPoints and shapes in JSON: what documents hold, and what queries ask with.

use geo::{
    Geometry, GeometryCollection, LineString, MultiLineString, MultiPoint, MultiPolygon, Point, Polygon, Rect, coord,
};
use serde_json::Value;

use crate::full_text::aggregate::GeoPoint;

/// Points of one shape; a shape of more is not indexed, and refused in a query.
pub const SHAPE_POINTS_MAX: usize = 10_000;

/// Collections inside collections.
const NESTING_MAX: usize = 4;

/// The points of a value that is declared to hold such: `{"lat", "lon"}`, `[lon, lat]`, `"lat,lon"`, or an array of
/// those. Anything else, and points off the globe, are passed over.
pub fn points_of(value: &Value) -> Vec<GeoPoint> {
    match value {
        Value::Array(list) => match &list[..] {
            [Value::Number(lon), Value::Number(lat)] => {
                let point = lat.as_f64().zip(lon.as_f64()).and_then(|(lat, lon)| GeoPoint::new(lat, lon));
                point.into_iter().collect()
            }
            list => list
                .iter()
                .flat_map(|element| if element.is_number() { Vec::new() } else { points_of(element) })
                .collect(),
        },
        Value::Object(members) => {
            let number = |name: &str| members.get(name).and_then(Value::as_f64);
            let point = number("lat").zip(number("lon")).and_then(|(lat, lon)| GeoPoint::new(lat, lon));
            point.into_iter().collect()
        }
        Value::String(text) => {
            let number = |part: &str| part.trim().parse::<f64>().ok();
            let numbers = text.split_once(',').and_then(|(lat, lon)| number(lat).zip(number(lon)));
            numbers.and_then(|(lat, lon)| GeoPoint::new(lat, lon)).into_iter().collect()
        }
        _ => Vec::new(),
    }
}

/// A GeoJSON geometry, or `envelope` with its upper left and lower right corner; the case of type names is ignored.
/// `None` when it is not one, is off the globe, or has too many points.
pub fn shape_of(value: &Value) -> Option<Geometry<f64>> {
    Shapes { points: 0 }.read(value, 0)
}

struct Shapes {
    points: usize,
}

impl Shapes {
    fn read(&mut self, value: &Value, depth: usize) -> Option<Geometry<f64>> {
        let coordinates = &value["coordinates"];
        Some(match value["type"].as_str()?.to_ascii_lowercase().as_str() {
            "point" => Geometry::Point(self.point(coordinates)?),
            "multipoint" => Geometry::MultiPoint(MultiPoint::new(self.points(coordinates, 1)?)),
            "linestring" => Geometry::LineString(self.line(coordinates)?),
            "multilinestring" => {
                let lines: Option<Vec<_>> = coordinates.as_array()?.iter().map(|line| self.line(line)).collect();
                Geometry::MultiLineString(MultiLineString::new(lines.filter(|lines| !lines.is_empty())?))
            }
            "polygon" => Geometry::Polygon(self.polygon(coordinates)?),
            "multipolygon" => {
                let polygons: Option<Vec<_>> =
                    coordinates.as_array()?.iter().map(|rings| self.polygon(rings)).collect();
                Geometry::MultiPolygon(MultiPolygon::new(polygons.filter(|polygons| !polygons.is_empty())?))
            }
            "envelope" => {
                let corners = self.points(coordinates, 2)?;
                let [upper_left, lower_right] = &corners[..] else { return None };
                if upper_left.x() > lower_right.x() || upper_left.y() < lower_right.y() {
                    return None;
                }
                Geometry::Polygon(Rect::new(upper_left.0, lower_right.0).to_polygon())
            }
            "geometrycollection" if depth < NESTING_MAX => {
                let parts = value["geometries"].as_array().filter(|parts| !parts.is_empty())?;
                let parts: Option<Vec<_>> = parts.iter().map(|part| self.read(part, depth + 1)).collect();
                Geometry::GeometryCollection(GeometryCollection::new_from(parts?))
            }
            _ => return None,
        })
    }

    /// A third number, the height, is ignored.
    fn point(&mut self, value: &Value) -> Option<Point<f64>> {
        self.points += 1;
        let list = value.as_array().filter(|list| matches!(list.len(), 2 | 3) && self.points <= SHAPE_POINTS_MAX)?;
        let point = GeoPoint::new(list[1].as_f64()?, list[0].as_f64()?)?;
        Some(Point(coord! { x: point.lon, y: point.lat }))
    }

    fn points(&mut self, value: &Value, least: usize) -> Option<Vec<Point<f64>>> {
        let points: Option<Vec<_>> = value.as_array()?.iter().map(|point| self.point(point)).collect();
        points.filter(|points| points.len() >= least)
    }

    fn line(&mut self, value: &Value) -> Option<LineString<f64>> {
        Some(LineString::from(self.points(value, 2)?))
    }

    /// The outer ring, then the holes; a ring that is open is closed.
    fn polygon(&mut self, value: &Value) -> Option<Polygon<f64>> {
        let rings: Option<Vec<_>> = value.as_array()?.iter().map(|ring| self.points(ring, 3)).collect();
        let mut rings = rings?.into_iter().map(LineString::from);
        Some(Polygon::new(rings.next()?, rings.collect()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn spellings_of_points() {
        let bern = GeoPoint { lat: 46.9, lon: 7.4 };
        for (value, points) in [
            (json!({"lat": 46.9, "lon": 7.4}), vec![bern]),
            (json!([7.4, 46.9]), vec![bern]),
            (json!("46.9, 7.4"), vec![bern]),
            (json!([[7.4, 46.9], {"lat": 46.9, "lon": 7.4}, "46.9,7.4"]), vec![bern; 3]),
            (json!([7.4, 46.9, 5]), vec![]),
            (json!({"lat": 46.9}), vec![]),
            (json!([7.4, 91]), vec![]),
            (json!("here"), vec![]),
            (json!(5), vec![]),
        ] {
            assert_eq!(points_of(&value), points, "{value}");
        }
    }

    #[test]
    fn what_is_a_shape() {
        let ring = json!([[0, 0], [4, 0], [4, 4], [0, 0]]);
        for (value, is_shape) in [
            (json!({"type": "Point", "coordinates": [1, 2]}), true),
            (json!({"type": "Point", "coordinates": [1, 2, 300]}), true),
            (json!({"type": "point", "coordinates": [1]}), false),
            (json!({"type": "Point", "coordinates": [1, 95]}), false),
            (json!({"type": "LineString", "coordinates": [[0, 0], [1, 1]]}), true),
            (json!({"type": "LineString", "coordinates": [[0, 0]]}), false),
            (json!({"type": "Polygon", "coordinates": [ring]}), true),
            (json!({"type": "Polygon", "coordinates": []}), false),
            (json!({"type": "MultiPolygon", "coordinates": [[ring], [ring]]}), true),
            (json!({"type": "envelope", "coordinates": [[0, 4], [4, 0]]}), true),
            (json!({"type": "envelope", "coordinates": [[0, 0], [4, 4]]}), false),
            (json!({"type": "GeometryCollection", "geometries": [{"type": "Point", "coordinates": [1, 2]}]}), true),
            (json!({"type": "Sphere", "coordinates": [1, 2]}), false),
            (json!({"type": "MultiPoint", "coordinates": vec![[1, 2]; 10_001]}), false),
            (json!([1, 2]), false),
        ] {
            assert_eq!(
                shape_of(&value).is_some(),
                is_shape,
                "{}",
                &value.to_string()[..40.min(value.to_string().len())]
            );
        }
    }
}
