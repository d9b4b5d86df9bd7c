//! Conditions on points and shapes. They are evaluated exactly, over columns: a path's points lie in the columns of
//! its members `lat` and `lon`, the n-th latitude with the n-th longitude; its shapes lie in its own column, as JSON.

use std::sync::Arc;

use geo::{BoundingRect, Geometry, Intersects, LineString, Point, Polygon, Rect, Relate};
use serde_json::Value;
use tantivy::columnar::{Column, DynamicColumn, StrColumn};
use tantivy::query::{BitSetDocSet, ConstScorer, EmptyScorer, EnableScoring, Explanation, Query, Scorer, Weight};
use tantivy::{BitSet, DocId, DocSet, Score, SeekDangerResult, SegmentReader, TERMINATED, TantivyError};

use crate::error::EngineError;
use crate::full_text::aggregate::GeoPoint;
use crate::full_text::documents::geo_values::shape_of;
use crate::full_text::errors::carried;
use crate::full_text::plan::ShapeRelation;
use crate::full_text::query::compile::index_fields::column_name;
use crate::full_text::query::deadline::Deadline;

const DOCUMENTS_BETWEEN_LOOKS: u32 = 1024;

/// Degrees: longitude, latitude.
pub type LonLat = [f64; 2];

const HALF_TURN: f64 = 180.0;
const FULL_TURN: f64 = 360.0;

/// The corners, each at the longitude from which the edge to the one before is straight: an edge over more than 180
/// degrees is meant to go the short way, over the date line, and its end then lies beyond 180 degrees. An edge from the
/// date line to the date line goes all the way round: so is a polygon written that spans every longitude.
///
/// Errors: `invalid_query` when the corners end elsewhere than they began, so that they go round a pole.
fn over_date_line(points: &[LonLat]) -> Result<Vec<LonLat>, EngineError> {
    let Some(&[first, _]) = points.first() else { return Ok(Vec::new()) };
    let (mut before, mut turn) = (first, 0.0);
    let mut step_to = |lon: f64| {
        let is_whole_turn = before.abs() == HALF_TURN && lon.abs() == HALF_TURN;
        if (lon - before).abs() > HALF_TURN && !is_whole_turn {
            turn += if lon < before { FULL_TURN } else { -FULL_TURN };
        }
        before = lon;
        lon + turn
    };
    let corners: Vec<LonLat> = points.iter().map(|&[lon, lat]| [step_to(lon), lat]).collect();
    if step_to(first) != first {
        let message = "the polygon does not close: where it goes round a pole, let it reach the pole along -180 and 180 \
                       degrees; where it goes over the date line, name that by 180 or by -180, not by both";
        return Err(EngineError::new("invalid_query", message));
    }
    Ok(corners)
}

/// The question that is asked of a point or shape.
#[derive(Debug, Clone)]
pub enum GeoTest {
    /// Goes over the date line when `west` lies east of `east`.
    Box {
        west: f64,
        east: f64,
        south: f64,
        north: f64,
    },
    Distance {
        center: GeoPoint,
        meters: f64,
    },
    Polygon {
        polygon: Box<Polygon<f64>>,
        bounds: Rect<f64>,
    },
    Shape {
        shape: Box<Geometry<f64>>,
        relation: ShapeRelation,
    },
}

impl GeoTest {
    pub fn in_box(top_left: LonLat, bottom_right: LonLat) -> Self {
        Self::Box { west: top_left[0], east: bottom_right[0], south: bottom_right[1], north: top_left[1] }
    }

    /// Errors: `invalid_query` when the center is off the globe.
    pub fn near(center: LonLat, meters: f64) -> Result<Self, EngineError> {
        let center = GeoPoint::new(center[1], center[0]);
        let center = center.ok_or_else(|| EngineError::new("invalid_query", "the center is not on the globe"))?;
        Ok(Self::Distance { center, meters })
    }

    /// The polygon may go over the date line, by the rule of `over_date_line`.
    ///
    /// Errors: `invalid_query` for fewer than three points, and for a polygon around a pole.
    pub fn in_polygon(points: &[LonLat]) -> Result<Self, EngineError> {
        let ring: LineString<f64> = over_date_line(points)?.into_iter().map(|[lon, lat]| (lon, lat)).collect();
        let polygon = Polygon::new(ring, Vec::new());
        let bounds = polygon.bounding_rect().filter(|_| points.len() >= 3);
        let bounds = bounds.ok_or_else(|| EngineError::new("invalid_query", "a polygon has at least three points"))?;
        Ok(Self::Polygon { polygon: Box::new(polygon), bounds })
    }

    /// Errors: `invalid_query` when `geometry` is not a shape.
    pub fn related_to(geometry: &Value, relation: ShapeRelation) -> Result<Self, EngineError> {
        let shape = shape_of(geometry).ok_or_else(|| {
            EngineError::new(
                "invalid_query",
                "the geometry is not a GeoJSON geometry of at most 10,000 points on the globe",
            )
        })?;
        Ok(Self::Shape { shape: Box::new(shape), relation })
    }

    fn takes_point(&self, point: GeoPoint) -> bool {
        let GeoPoint { lat, lon } = point;
        match self {
            Self::Box { west, east, south, north } => {
                let between = if west <= east { (*west..=*east).contains(&lon) } else { lon >= *west || lon <= *east };
                between && (*south..=*north).contains(&lat)
            }
            Self::Distance { center, meters } => center.distance_to(point) <= *meters,
            Self::Polygon { polygon, bounds } => {
                // A polygon over the date line lies partly beyond 180 degrees, east or west.
                [lon, lon - FULL_TURN, lon + FULL_TURN].into_iter().any(|lon| {
                    let point = Point::new(lon, lat);
                    bounds.intersects(&point) && polygon.intersects(&point)
                })
            }
            Self::Shape { .. } => self.takes_shape(&Geometry::Point(Point::new(lon, lat))),
        }
    }

    /// Borders belong to a shape.
    fn takes_shape(&self, other: &Geometry<f64>) -> bool {
        let Self::Shape { shape, relation } = self else { return false };
        let near = match (shape.bounding_rect(), other.bounding_rect()) {
            (Some(one), Some(two)) => one.intersects(&two),
            _ => false,
        };
        near && match relation {
            ShapeRelation::Intersects => other.relate(&**shape).is_intersects(),
            ShapeRelation::Contains => other.relate(&**shape).is_covers(),
            ShapeRelation::Within => other.relate(&**shape).is_coveredby(),
        }
    }

    /// Whether a document costs so little that the clock need not be watched.
    fn is_cheap(&self) -> bool {
        matches!(self, Self::Box { .. } | Self::Distance { .. })
    }
}

/// Numbers of one path, of whatever type this segment gave them.
enum Numbers {
    Integers(Column<i64>),
    Unsigned(Column<u64>),
    Floats(Column<f64>),
}

impl Numbers {
    fn open(reader: &SegmentReader, name: &str) -> tantivy::Result<Option<Self>> {
        for handle in reader.fast_fields().dynamic_column_handles(name)? {
            match handle.open()? {
                DynamicColumn::I64(column) => return Ok(Some(Self::Integers(column))),
                DynamicColumn::U64(column) => return Ok(Some(Self::Unsigned(column))),
                DynamicColumn::F64(column) => return Ok(Some(Self::Floats(column))),
                _ => {}
            }
        }
        Ok(None)
    }

    fn of(&self, document: DocId) -> Box<dyn Iterator<Item = f64> + '_> {
        match self {
            Self::Integers(column) => Box::new(column.values_for_doc(document).map(|number| number as f64)),
            Self::Unsigned(column) => Box::new(column.values_for_doc(document).map(|number| number as f64)),
            Self::Floats(column) => Box::new(column.values_for_doc(document)),
        }
    }
}

/// Where a path's points and shapes lie in one segment.
struct GeoColumns {
    points: Option<(Numbers, Numbers)>,
    shapes: Option<StrColumn>,
}

impl GeoColumns {
    fn open(reader: &SegmentReader, path: &str, test: &GeoTest) -> tantivy::Result<Self> {
        let name = column_name(path);
        let lats = Numbers::open(reader, &format!("{name}.lat"))?;
        let lons = Numbers::open(reader, &format!("{name}.lon"))?;
        let shapes = match test {
            GeoTest::Shape { .. } => reader.fast_fields().str(&name)?,
            _ => None,
        };
        Ok(Self { points: lats.zip(lons), shapes })
    }

    fn matches(&self, document: DocId, test: &GeoTest) -> bool {
        let point_matches = || {
            self.points.as_ref().is_some_and(|(lats, lons)| {
                let mut points =
                    lats.of(document).zip(lons.of(document)).filter_map(|(lat, lon)| GeoPoint::new(lat, lon));
                points.any(|point| test.takes_point(point))
            })
        };
        let shape_matches = || {
            self.shapes.as_ref().is_some_and(|shapes| {
                shapes.term_ords(document).any(|ord| {
                    let mut json = String::new();
                    let found = shapes.ord_to_str(ord, &mut json).unwrap_or(false);
                    let value = if found { serde_json::from_str::<Value>(&json).ok() } else { None };
                    value.and_then(|value| shape_of(&value)).is_some_and(|shape| test.takes_shape(&shape))
                })
            })
        };
        point_matches() || shape_matches()
    }
}

/// Every match scores 1.
#[derive(Debug, Clone)]
pub struct GeoQuery {
    pub path: String,
    pub test: Arc<GeoTest>,
    pub deadline: Deadline,
}

impl Query for GeoQuery {
    fn weight(&self, _: EnableScoring<'_>) -> tantivy::Result<Box<dyn Weight>> {
        Ok(Box::new(self.clone()))
    }
}

impl Weight for GeoQuery {
    fn scorer(&self, reader: &SegmentReader, boost: Score) -> tantivy::Result<Box<dyn Scorer>> {
        let columns = GeoColumns::open(reader, &self.path, &self.test)?;
        if columns.points.is_none() && columns.shapes.is_none() {
            return Ok(Box::new(EmptyScorer));
        }
        if self.test.is_cheap() {
            let test = Arc::clone(&self.test);
            let mut documents = GeoDocuments { columns, test, document: 0, max_doc: reader.max_doc() };
            documents.settle(0);
            return Ok(Box::new(ConstScorer::new(documents, boost)));
        }
        let mut documents = BitSet::with_max_value(reader.max_doc());
        for document in 0..reader.max_doc() {
            // Two large shapes take their time.
            let is_look = columns.shapes.is_some() || document % DOCUMENTS_BETWEEN_LOOKS == 0;
            if is_look && self.deadline.is_due() {
                return Err(carried(self.deadline.error()));
            }
            if columns.matches(document, &self.test) {
                documents.insert(document);
            }
        }
        Ok(Box::new(ConstScorer::new(BitSetDocSet::from(documents), boost)))
    }

    fn explain(&self, reader: &SegmentReader, document: DocId) -> tantivy::Result<Explanation> {
        let mut scorer = self.scorer(reader, 1.0)?;
        if scorer.doc() > document || scorer.seek(document) != document {
            return Err(TantivyError::InvalidArgument(format!("document {document} does not match")));
        }
        Ok(Explanation::new("point", 1.0))
    }
}

/// Looks at a document when it is asked for: beside a narrow condition, at few of them.
struct GeoDocuments {
    columns: GeoColumns,
    test: Arc<GeoTest>,
    document: DocId,
    max_doc: DocId,
}

impl GeoDocuments {
    fn settle(&mut self, from: DocId) -> DocId {
        let found = (from..self.max_doc).find(|&document| self.columns.matches(document, &self.test));
        self.document = found.unwrap_or(TERMINATED);
        self.document
    }
}

impl DocSet for GeoDocuments {
    fn advance(&mut self) -> DocId {
        if self.document == TERMINATED { TERMINATED } else { self.settle(self.document + 1) }
    }

    fn seek(&mut self, target: DocId) -> DocId {
        if self.document >= target { self.document } else { self.settle(target) }
    }

    fn seek_danger(&mut self, target: DocId) -> SeekDangerResult {
        if target >= self.max_doc {
            self.document = TERMINATED;
            return SeekDangerResult::SeekLowerBound(TERMINATED);
        }
        self.document = target;
        if self.columns.matches(target, &self.test) {
            SeekDangerResult::Found
        } else {
            SeekDangerResult::SeekLowerBound(target + 1)
        }
    }

    fn doc(&self) -> DocId {
        self.document
    }

    /// As if every document matched, so that other conditions lead.
    fn size_hint(&self) -> u32 {
        self.max_doc
    }

    fn cost(&self) -> u64 {
        u64::from(self.max_doc) * 10
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    /// Numbers from a seed: corners of a small grid, so that shapes touch, overlap and degenerate often.
    fn corner(seed: &mut u64) -> Value {
        let mut next = || {
            *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (*seed >> 33) % 5
        };
        json!([next(), next()])
    }

    fn random_shape(seed: &mut u64) -> Value {
        let kind = corner(seed)[0].as_u64().unwrap_or(0);
        let count = 3 + corner(seed)[1].as_u64().unwrap_or(0);
        let corners: Vec<Value> = (0..count).map(|_| corner(seed)).collect();
        match kind {
            0 => json!({"type": "Point", "coordinates": corners[0]}),
            1 => json!({"type": "LineString", "coordinates": corners}),
            2 => {
                json!({"type": "MultiPolygon", "coordinates": [[corners], [[corner(seed), corner(seed), corner(seed)]]]})
            }
            3 => json!({"type": "GeometryCollection", "geometries": [random_shape(seed), random_shape(seed)]}),
            _ => json!({"type": "Polygon", "coordinates": [corners]}),
        }
    }

    #[test]
    fn relations_of_any_two_shapes_agree_with_each_other() {
        let mut seed = 11;
        for round in 0..3_000 {
            let (one, two) = (random_shape(&mut seed), random_shape(&mut seed));
            // Collections may have come out too deep.
            let (Some(_), Some(shape)) = (shape_of(&one), shape_of(&two)) else { continue };
            let relates = |relation| GeoTest::related_to(&one, relation).expect("a test").takes_shape(&shape);
            let intersects = relates(ShapeRelation::Intersects);
            let (contains, within) = (relates(ShapeRelation::Contains), relates(ShapeRelation::Within));
            assert!(intersects || !(contains || within), "round {round}: {one} {two}");
        }
    }

    #[test]
    fn a_polygon_may_go_over_the_date_line() {
        let point = |lon: f64, lat: f64| GeoPoint::new(lat, lon).expect("a point");
        let square = [[170.0, -10.0], [-170.0, -10.0], [-170.0, 10.0], [170.0, 10.0]];
        for turned in 0..4 {
            let mut corners = square;
            corners.rotate_left(turned);
            let pacific = GeoTest::in_polygon(&corners).expect("a polygon");
            for (lon, lat, is_in) in [
                (175.0, 0.0, true),
                (180.0, 0.0, true),
                (-180.0, 5.0, true),
                (-175.0, 0.0, true),
                (-175.0, 11.0, false),
                (169.0, 0.0, false),
                (0.0, 0.0, false),
            ] {
                assert_eq!(pacific.takes_point(point(lon, lat)), is_in, "{lon} {lat}, from corner {turned}");
            }
        }
        let world = [[-180.0, -90.0], [180.0, -90.0], [180.0, 90.0], [-180.0, 90.0]];
        let world = GeoTest::in_polygon(&world).expect("a polygon");
        assert!([-180.0, -90.0, 0.0, 179.0].into_iter().all(|lon| world.takes_point(point(lon, 45.0))));
        let round_the_pole = [[-120.0, 70.0], [0.0, 70.0], [120.0, 70.0]];
        assert_eq!(GeoTest::in_polygon(&round_the_pole).expect_err("refused").code, "invalid_query");
        let to_the_pole = [[-180.0, 70.0], [0.0, 70.0], [180.0, 70.0], [180.0, 90.0], [-180.0, 90.0]];
        let to_the_pole = GeoTest::in_polygon(&to_the_pole).expect("a polygon");
        assert!([-180.0, -90.0, 0.0, 179.0].into_iter().all(|lon| to_the_pole.takes_point(point(lon, 80.0))));
    }

    #[test]
    fn a_box_may_go_over_the_date_line() {
        let point = |lon: f64| GeoPoint::new(0.0, lon).expect("a point");
        let pacific = GeoTest::in_box([170.0, 10.0], [-170.0, -10.0]);
        for (lon, is_in) in [(170.0, true), (180.0, true), (-180.0, true), (-170.0, true), (0.0, false), (169.9, false)]
        {
            assert_eq!(pacific.takes_point(point(lon)), is_in, "{lon}");
        }
    }
}
