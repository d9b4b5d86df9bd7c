import { Database } from 'bun:sqlite';
import { must } from '../../src/lib/assert.ts';

// Has the first step of a lock on the file named by the first argument, as a process that begins to take it. Goes back
// a moment after it is told to.
const goBackMs = 20;
const database = new Database(must(process.argv[2], 'usage: lock-reader FILE'));
database.run('BEGIN');
database.query('SELECT * FROM sqlite_schema').all();
process.stdout.write('reading\n');
process.stdin.once('data', () => setTimeout(() => database.close(), goBackMs));
