import { Database } from 'bun:sqlite';

/** Opens a file that a writer has open, to change it behind the writer's back. Waits while the writer holds its lock. */
export function openBehind(path: string): Database {
  const database = new Database(path);
  database.run('PRAGMA busy_timeout = 5000');
  return database;
}
