//! The best paths between nodes, and by Yen's algorithm (Management Science 17, 1971) the next best.

use std::collections::{BTreeMap, HashSet};

use sundew_base::error::EngineError;

use super::cheapest_path::cheapest;
use super::fewest_hops::fewest_hops;
use super::path::{Blocked, Path, cost_of};
use super::request::{FoundPath, GraphAnswer, GraphRequest, PathOptions, WeightMode};
use super::view::GraphView;

pub fn paths<'a>(
    view: &mut GraphView<'a>,
    request: &'a GraphRequest,
    options: &PathOptions,
) -> Result<GraphAnswer, EngineError> {
    let mut nodes = |keys: &'a [String]| -> Vec<u32> {
        let mut nodes: Vec<u32> = keys.iter().map(|key| view.node_of_key(key)).collect();
        nodes.sort_unstable_by(|left, right| view.compare(*left, *right));
        nodes.dedup();
        nodes.retain(|node| !view.is_hidden(*node));
        nodes
    };
    let (starts, targets) = (nodes(&request.starts), nodes(&request.targets));
    let mut found = Vec::new();
    if options.k == 0 {
        let starts: Vec<_> = starts.iter().map(|start| Path::at(*start)).collect();
        for target in targets {
            found.extend(best(view, options, &starts, &[target], &Blocked::default())?);
            if view.bounds().must_stop() {
                break;
            }
        }
    } else {
        found = k_best(view, options, &starts, &targets)?;
    }
    let paths: Vec<FoundPath> = found.iter().map(|path| path.render(view, options.weight_mode)).collect();
    let refused = view.take_refused();
    Ok(GraphAnswer { total: paths.len() as u64, paths, refused, ..GraphAnswer::default() })
}

/// The best path that continues one of `starts`, which are of one length, to a target: of the least cost, then the fewest
/// hops. Of several the one whose last node has the least key, then the node before it, and so on; of several edges between
/// two nodes the one of the least type.
fn best(
    view: &mut GraphView<'_>,
    options: &PathOptions,
    starts: &[Path],
    targets: &[u32],
    blocked: &Blocked,
) -> Result<Option<Path>, EngineError> {
    match options.weight_mode {
        WeightMode::MinHops => Ok(fewest_hops(view, options.max_depth, starts, targets, blocked)),
        mode => cheapest(view, mode, options.max_depth, starts, targets, blocked),
    }
}

/// The `k` best paths without a node twice, best first.
fn k_best(
    view: &mut GraphView<'_>,
    options: &PathOptions,
    starts: &[u32],
    targets: &[u32],
) -> Result<Vec<Path>, EngineError> {
    let from: Vec<Path> = starts.iter().map(|start| Path::at(*start)).collect();
    let mut found: Vec<Path> = best(view, options, &from, targets, &Blocked::default())?.into_iter().collect();
    let mut candidates: BTreeMap<Vec<u32>, Path> = BTreeMap::new();
    while let Some(last) = found.last().filter(|_| found.len() < options.k).cloned() {
        // A spur of no nodes begins at another start.
        for kept in 0..last.nodes.len() {
            let root = &last.nodes[..kept];
            let alike: Vec<&Path> =
                found.iter().filter(|path| path.nodes.len() > kept && path.nodes[..kept] == *root).collect();
            let mut blocked = Blocked { nodes: root.iter().copied().collect(), ..Blocked::default() };
            let spur = if kept == 0 {
                let used: HashSet<u32> = alike.iter().map(|path| path.nodes[0]).collect();
                starts.iter().filter(|start| !used.contains(start)).map(|start| Path::at(*start)).collect()
            } else {
                let end = root[kept - 1];
                blocked.hops.extend(alike.iter().map(|path| (end, path.nodes[kept])));
                let steps = last.steps[..kept - 1].to_vec();
                // An edge of a path was not refused.
                let costs = steps.iter().filter_map(|step| cost_of(step, options.weight_mode).ok());
                let cost = costs.fold(0.0, |sum, cost| sum + cost);
                vec![Path { cost, nodes: root.to_vec(), steps }]
            };
            // A path ends at the first target that it meets.
            if kept > 0 && targets.contains(&root[kept - 1]) {
                continue;
            }
            if let Some(path) = best(view, options, &spur, targets, &blocked)? {
                candidates.insert(path.nodes.clone(), path);
            }
            if view.bounds().must_stop() {
                return Ok(found);
            }
        }
        let next = candidates.values().min_by(|left, right| left.compare(right, view)).cloned();
        let Some(next) = next else { break };
        candidates.remove(&next.nodes);
        found.push(next);
    }
    Ok(found)
}
