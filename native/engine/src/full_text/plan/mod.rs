//! The plan of a query, as `src/query/plan/native-plan.ts` and `src/query/aggregations/aggregation-plan.ts` write it. A
//! fixture keeps the two languages alike: `tests/plan_fixture.rs`.

mod aggregation;
mod legs;
mod node;
mod query_plan;

pub use aggregation::{
    Aggregation, AggregationKind, AggregationPlan, Background, CalendarInterval, CardinalityMode, DateBounds,
    NumberBounds, NumberMetric, SignificanceAlgorithm, Taken,
};
pub use legs::{Fusion, Leg, LegKind, Pruner, Strategy};
pub use node::{ALL_FIELDS, Automatic, Fuzziness, Node, Operator, RangeKind, ShapeRelation, TermValue, WeightedField};
pub use query_plan::{PageCursor, QueryPlan, SortField};
