import type { VectorEngineProcess } from '../engines/vector-engine-process.ts';
import { type CurvePoint, rateAtRecall, recallOf } from '../measure/recall.ts';
import { median } from '../measure/statistics.ts';
import { neighbours } from '../workloads/exact-neighbours.ts';
import type { VectorFilter } from '../workloads/vector-set.ts';

/** The recall at which dense indexes are compared. */
export const comparedRecall = 0.95;

/** Ours by `search_effort`, the peers by the candidates of their walk. */
export const ourEfforts = [0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1] as const;
export const peerCandidates = [10, 16, 24, 36, 54, 80, 120, 180, 270, 400, 600, 900] as const;

interface CurveOptions {
  engine: VectorEngineProcess;
  efforts: readonly number[];
  truth: readonly number[][];
  rounds: number;
  filter?: VectorFilter;
  /** Answers the most thorough search when the recall is not reached, instead of failing. */
  orBest?: boolean;
}

export interface Curve {
  points: CurvePoint[];
  /** Queries a second at the compared recall. */
  perSecond: number;
}

/** One query after another at rising effort, until the recall is well above the compared one. */
export async function recallCurve({ engine, efforts, truth, rounds, filter, orBest }: CurveOptions): Promise<Curve> {
  const points: CurvePoint[] = [];
  for (const effort of efforts) {
    const answer = await engine.search({
      limit: neighbours,
      effort,
      inFlight: 1,
      rounds,
      ...(filter ? { filter } : {}),
    });
    const recall = recallOf(answer.found, truth);
    points.push({ recall, perSecond: answer.perSecond });
    if (recall >= comparedRecall + 0.02) break;
  }
  const recall = Math.min(comparedRecall, Math.max(...points.map((point) => point.recall)));
  return { points, perSecond: rateAtRecall(points, orBest ? recall : comparedRecall) };
}

/** `0.91 at 5,100/s, 0.96 at 3,900/s` of the curves' medians. */
export function describeCurves(curves: readonly Curve[]): string {
  const [first] = curves;
  const points = first?.points ?? [];
  return points
    .map(({ recall }, at) => {
      const rates = curves.flatMap((curve) => curve.points[at]?.perSecond ?? []);
      return `${recall.toFixed(3)} at ${Math.round(median(rates)).toLocaleString('en-US')}/s`;
    })
    .join('; ');
}
