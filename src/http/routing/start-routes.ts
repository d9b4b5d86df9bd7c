import type { Readiness } from '../../observability/readiness.ts';
import { documentRoutes } from '../database/documents.ts';
import { queryRoutes } from '../database/query.ts';
import { tableRoutes } from '../database/tables.ts';
import { transactionRoutes } from '../database/transactions.ts';
import { writeRoutes } from '../database/writes.ts';
import { frontDoor } from './front-door.ts';
import { healthRoutes } from './health.ts';
import type { Route } from './route.ts';

/** The services behind the routes that a start waits for, by group. */
export interface StartServices {
  readonly tables: Parameters<typeof tableRoutes>[0];
  readonly writes: Parameters<typeof writeRoutes>[0];
  readonly transactions: Parameters<typeof transactionRoutes>[1];
  readonly documents: Parameters<typeof documentRoutes>[0];
  readonly queries: Parameters<typeof queryRoutes>[0];
  readonly readiness: Readiness;
}

/** Tables, their documents, queries and health, which the first client asks for. The others are loaded behind these. */
export function startRoutes(services: StartServices): Route[] {
  return [
    ...tableRoutes(services.tables),
    ...writeRoutes(services.writes),
    ...transactionRoutes(services.writes, services.transactions),
    ...documentRoutes(services.documents),
    ...queryRoutes(services.queries),
    ...healthRoutes(services.readiness),
    frontDoor,
  ];
}
