//! Nodes that stand to each other as the elements of a pattern do.
//!
//! Elements of different variables may be the same node. On the way from one element to the next no node and no edge comes
//! twice, but the way may end where it began. An element is found once for each number of hops by which it is reached.

use std::collections::{BTreeSet, HashMap, HashSet};
use std::rc::Rc;

use super::request::{FoundEdge, FoundMatch, FoundNode, GraphAnswer, GraphRequest, PatternElement, PatternOptions};
use super::shown_values::decimal;
use super::view::{FollowedEdges, GraphView, Step};

/// A node on the ways away from one.
#[derive(Clone, Copy)]
struct Hop {
    node: u32,
    hops: u32,
    /// Index of the hop before it; its own for the first node.
    from: u32,
    step: Step,
    distance: f64,
}

/// The ways from a node to what may be the next element.
struct Expansion {
    hops: Vec<Hop>,
    /// Indexes of the nodes found, by hops and key; of several ways of one length the one through the least keys.
    ends: Vec<u32>,
}

struct Element<'a> {
    asked: &'a PatternElement,
    followed: FollowedEdges,
    rejected: HashSet<&'a str>,
    candidates: BTreeSet<u32>,
}

/// One element of the match at hand.
#[derive(Clone)]
struct Bound {
    node: u32,
    /// The ways that it was reached by, and its index among them; of the first element none.
    way: Option<(Rc<Expansion>, u32)>,
}

struct Matcher<'v, 'a> {
    view: &'v mut GraphView<'a>,
    options: &'a PatternOptions,
    elements: Vec<Element<'a>>,
    expansions: HashMap<(usize, u32), Rc<Expansion>>,
    /// Of each variable the node that it stands for.
    variables: Vec<Option<u32>>,
    bound: Vec<Bound>,
    found: Vec<FoundMatch>,
    total: u64,
}

/// Matches by the key of the first node, then for each element by hops and key.
pub fn matches<'a>(view: &mut GraphView<'a>, request: &'a GraphRequest, options: &'a PatternOptions) -> GraphAnswer {
    let mut starts: Vec<u32> = request.starts.iter().map(|key| view.node_of_key(key)).collect();
    starts.sort_unstable_by(|left, right| view.compare(*left, *right));
    starts.dedup();
    starts.retain(|node| !view.is_hidden(*node));
    let element = |asked: &'a PatternElement| Element {
        asked,
        followed: FollowedEdges {
            direction: asked.edge.direction,
            types: view.types_named(&asked.edge.types),
            weights: (
                asked.edge.min_weight.unwrap_or(f32::NEG_INFINITY),
                asked.edge.max_weight.unwrap_or(f32::INFINITY),
            ),
        },
        rejected: asked.rejected.iter().map(String::as_str).collect(),
        candidates: BTreeSet::new(),
    };
    let elements: Vec<Element<'_>> = options.elements.iter().map(element).collect();
    let variables = vec![None; options.elements.iter().map(|element| element.variable + 1).max().unwrap_or(0)];
    let mut matcher = Matcher {
        view,
        options,
        elements,
        expansions: HashMap::new(),
        variables,
        bound: Vec::new(),
        found: Vec::new(),
        total: 0,
    };
    for start in starts {
        matcher.bind(Bound { node: start, way: None });
        if matcher.view.bounds().must_stop() {
            break;
        }
    }
    let candidates = if request.reports_nodes { matcher.candidates() } else { Vec::new() };
    let Matcher { found, total, .. } = matcher;
    GraphAnswer { matches: found, total, candidates, ..GraphAnswer::default() }
}

impl Matcher<'_, '_> {
    /// Takes a node for the next element, and goes on to those behind it.
    fn bind(&mut self, next: Bound) {
        let at = self.bound.len();
        let Some(element) = self.elements.get_mut(at) else { return };
        let variable = element.asked.variable;
        let known = self.variables[variable];
        if known.is_some_and(|node| node != next.node) {
            return;
        }
        if element.asked.is_filtered {
            element.candidates.insert(next.node);
        }
        if element.rejected.contains(self.view.key(next.node)) {
            return;
        }
        let node = next.node;
        self.variables[variable] = Some(node);
        self.bound.push(next);
        if self.bound.len() == self.elements.len() {
            self.take();
        } else {
            let expansion = self.expansion(at + 1, node);
            for end in &expansion.ends {
                // Ways that were found before are no work for the index, but for this search.
                if !self.view.bounds_mut().counts_edge() {
                    break;
                }
                let node = expansion.hops[*end as usize].node;
                self.bind(Bound { node, way: Some((Rc::clone(&expansion), *end)) });
            }
        }
        self.bound.pop();
        self.variables[variable] = known;
    }

    fn take(&mut self) {
        if self.total >= self.options.matches_max {
            self.view.bounds_mut().stop("matches");
            return;
        }
        self.total += 1;
        if self.found.len() >= self.options.max_results {
            return;
        }
        let (mut depth, mut distance) = (0, 0.0);
        let (mut nodes, mut path) = (Vec::with_capacity(self.bound.len()), Vec::new());
        for bound in &self.bound {
            if let Some((expansion, end)) = &bound.way {
                let end = &expansion.hops[*end as usize];
                depth += end.hops;
                distance += end.distance;
                if self.options.include_paths {
                    path.extend(expansion.way_to(end, self.view));
                }
            }
            let key = self.view.key(bound.node).to_owned();
            nodes.push(FoundNode { key, depth, distance, ..FoundNode::default() });
        }
        self.found.push(FoundMatch { nodes, path });
    }

    /// The ways from a node to the element at `at`.
    fn expansion(&mut self, at: usize, node: u32) -> Rc<Expansion> {
        if let Some(known) = self.expansions.get(&(at, node)) {
            return Rc::clone(known);
        }
        let element = &self.elements[at];
        self.view.follow(&element.followed);
        let edge = &element.asked.edge;
        let expansion = Rc::new(Expansion::of(self.view, node, edge.min_hops, edge.max_hops));
        self.expansions.insert((at, node), Rc::clone(&expansion));
        expansion
    }

    fn candidates(&self) -> Vec<Vec<String>> {
        let keys = |nodes: &BTreeSet<u32>| nodes.iter().map(|node| self.view.key(*node).to_owned()).collect();
        self.elements.iter().map(|element| keys(&element.candidates)).collect()
    }
}

impl Expansion {
    fn of(view: &mut GraphView<'_>, start: u32, min_hops: u32, max_hops: u32) -> Self {
        let step = Step { node: start, edge_type: 0, weight: 0.0, forward: true };
        let mut hops = vec![Hop { node: start, hops: 0, from: 0, step, distance: 0.0 }];
        let mut ends = Vec::new();
        if min_hops == 0 {
            ends.push(0);
        }
        let (mut level, mut steps) = (0..1, Vec::new());
        for count in 1..=max_hops {
            for from in level.clone() {
                let last: Hop = hops[from];
                // A way that has come back to where it began ends there.
                if last.hops > 0 && last.node == start {
                    continue;
                }
                view.expand(last.node, &mut steps);
                steps.retain(|step| {
                    let is_same_edge =
                        last.hops > 0 && step.edge_type == last.step.edge_type && step.forward != last.step.forward;
                    let goes_back = step.node == hops[last.from as usize].node && is_same_edge;
                    step.node == start && !goes_back || !is_on_way(&hops, from, step.node)
                });
                steps.sort_unstable_by(|left, right| {
                    view.compare(left.node, right.node).then_with(|| left.rank().cmp(&right.rank()))
                });
                steps.dedup_by_key(|step| step.node);
                for step in &steps {
                    let distance = last.distance + decimal(step.weight);
                    hops.push(Hop { node: step.node, hops: count, from: from as u32, step: *step, distance });
                }
                if view.bounds().must_stop() || view.bounds_mut().meets_nodes(hops.len()) {
                    break;
                }
            }
            level = level.end..hops.len();
            if count >= min_hops {
                let mut seen = HashSet::new();
                let mut found: Vec<u32> = level.clone().map(|at| at as u32).collect();
                found.retain(|at| seen.insert(hops[*at as usize].node));
                found.sort_by(|left, right| view.compare(hops[*left as usize].node, hops[*right as usize].node));
                ends.extend(found);
            }
            if level.is_empty() || view.bounds().must_stop() {
                break;
            }
        }
        Self { hops, ends }
    }

    /// The edges from the first node to a hop.
    fn way_to(&self, end: &Hop, view: &GraphView<'_>) -> Vec<FoundEdge> {
        let mut edges = Vec::with_capacity(end.hops as usize);
        let mut here = end;
        while here.hops > 0 {
            let before = &self.hops[here.from as usize];
            edges.push(view.edge_of(before.node, &here.step));
            here = before;
        }
        edges.reverse();
        edges
    }
}

fn is_on_way(hops: &[Hop], mut at: usize, node: u32) -> bool {
    loop {
        let here = &hops[at];
        if here.node == node {
            return true;
        }
        if here.hops == 0 {
            return false;
        }
        at = here.from as usize;
    }
}
